package e2e

import (
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/execution"
)

// The plug is pulled while a job runs, runners are warm and claimed, and an execution is under way.
func TestWhatRanBeforeAKillRunsAfterIt(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	args := append([]string{"-server", "-client"}, config(t, data, "")...)
	a := start(t, args...)
	t.Cleanup(func() { cleanAfter(t, args) })
	c := a.nomad()
	pidFile := filepath.Join(t.TempDir(), "pid")
	_, _, err := c.Jobs().Register(rawJob("svc", "service", "/bin/sh", "-c", "echo $$ > "+pidFile+"; echo before; while :; do sleep 1; done"), nil)
	require.NoError(t, err)
	before := allocation(t, c, "svc", "running")
	pid := readPid(t, pidFile)
	away := filepath.Join(t.TempDir(), "away")
	_, _, err = c.Jobs().Register(rawJob("short", "batch", "/bin/sh", "-c", "while [ ! -e "+away+" ]; do sleep 0.1; done; exit 5"), nil)
	require.NoError(t, err)
	short := allocation(t, c, "short", "running")
	a.putEnvironment("10", 2)
	runner := a.claim(10)
	native := a.native()
	ctx := t.Context()
	require.NoError(t, native.ChangeFiles(ctx, runner, execution.FileChange{Path: "kept", Write: true, Data: []byte("mine")}))
	x, err := native.StartExecution(ctx, runner, execution.Request{Spec: execution.Spec{Argv: []string{"/bin/sh", "-c", "echo started; sleep 1000"}, Detach: -1}})
	require.NoError(t, err)

	a.PullThePlug()
	require.NoError(t, syscall.Kill(pid, 0), "the job's process must outlive the agent")
	require.NoError(t, os.WriteFile(away, nil, 0o600)) // one ends while there is no agent
	b := start(t, args...)
	c = b.nomad()

	again := allocation(t, c, "svc", "running")
	require.Equal(t, before.ID, again.ID)
	require.Equal(t, uint64(0), again.TaskStates["main"].Restarts)
	require.Equal(t, pid, readPid(t, pidFile))
	require.NoError(t, syscall.Kill(pid, 0))
	require.Equal(t, "before\n", logs(t, c, again.ID, "stdout"))
	ended := allocation(t, c, "short", "failed")
	require.Equal(t, short.ID, ended.ID)
	events := ended.TaskStates["main"].Events
	require.Equal(t, "5", events[terminated(t, ended.TaskStates["main"].Events[len(events)-1].Type, len(events), func(i int) string { return events[i].Type })].Details["exit_code"])

	native = b.native()
	r, err := native.Runner(ctx, runner)
	require.NoError(t, err, "a claimed runner is still the claimer's")
	require.Equal(t, runner, r.ID)
	file, err := native.ReadFile(ctx, runner, execution.FileRequest{Path: "kept"})
	require.NoError(t, err)
	text, err := io.ReadAll(file)
	require.NoError(t, err)
	require.Equal(t, "mine", string(text))
	list, err := native.Executions(ctx, runner)
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, x.ID, list[0].ID)
	require.True(t, list[0].Running)
	eventually(t, "a full pool", func() (bool, string) { p := b.pool("10"); return p.IdleRunners == 2 && p.UsedRunners == 1, "" })
	other := b.claim(10)
	require.NotEqual(t, runner, other)
	require.Equal(t, "usable\r\n", b.execute(other, map[string]any{"command": "echo usable"}, "").stdout)
}

// terminated finds the event that has the exit code.
func terminated(t *testing.T, _ string, n int, kind func(int) string) int {
	t.Helper()
	for i := n - 1; i >= 0; i-- {
		if kind(i) == "Terminated" {
			return i
		}
	}
	t.Fatal("no Terminated event")
	return -1
}

// cleanAfter stops all that the test's jobs left to run, as a person would.
func cleanAfter(t *testing.T, args []string) {
	a := launch(t, args...)
	if a.addr == "" {
		t.Errorf("cleaning up: the agent did not start:\n%s", a.Output())
		return
	}
	c := a.nomad()
	jobs, _, err := c.Jobs().List(nil)
	require.NoError(t, err)
	for _, j := range jobs {
		_, _, err := c.Jobs().Deregister(j.ID, true, nil)
		require.NoError(t, err)
	}
	eventually(t, "all allocations to end", func() (bool, string) {
		list, _, err := c.Allocations().List(nil)
		require.NoError(t, err)
		running, seen := 0, ""
		for _, x := range list {
			if x.ClientStatus == "running" || x.ClientStatus == "pending" {
				running++
				seen += x.Name + " " + x.DesiredStatus + " " + x.ClientStatus + "; "
			}
		}
		return running == 0, seen
	})
	require.NoError(t, c.System().GarbageCollect())
	a.Stop()
}

func readPid(t *testing.T, path string) int {
	t.Helper()
	var text []byte
	eventually(t, "the process's pid", func() (bool, string) {
		var err error
		text, err = os.ReadFile(path)
		return err == nil && strings.HasSuffix(string(text), "\n"), string(text)
	})
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	require.NoError(t, err)
	return pid
}

func TestASecondAgentOnTheDataIsRefused(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	args := append([]string{"-server", "-client"}, config(t, data, "")...)
	start(t, args...)
	second := launch(t, args...)
	require.Empty(t, second.addr)
	require.Contains(t, second.Output(), "in use by another agent")
}

func TestUnknownConfigurationIsRefused(t *testing.T) {
	t.Parallel()
	a := launch(t, append([]string{"-dev"}, config(t, "", "colour = \"red\"")...)...)
	require.Empty(t, a.addr)
	require.Contains(t, a.Output(), "colour")
}

func TestTheDemonstration(t *testing.T) {
	t.Parallel()
	a := start(t, append([]string{"-dev", "-demo"}, config(t, "", "")...)...)
	eventually(t, "the demonstration", func() (bool, string) { return strings.Contains(a.Output(), "try:"), a.Output() })
	for _, want := range []string{"stdout  Hello drover", "stderr  and I can see", "exit    0 (exited)", "times   claim"} {
		require.Contains(t, a.Output(), want)
	}
}
