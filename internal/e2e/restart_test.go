package e2e

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/hashicorp/nomad/api"
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
	_, _, err := c.Jobs().Register(rawJob("svc", "service", "/bin/sh", "-c", "echo $$ > "+pidFile+"; echo before; while :; do sleep 1; done"),
		nil)
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
	x, err := native.StartExecution(ctx, runner, execution.Request{Spec: execution.Spec{Argv: []string{
		"/bin/sh", "-c",
		"echo started; sleep 1000",
	}, Detach: -1}})
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
	at := slices.IndexFunc(events, func(e *api.TaskEvent) bool { return e.Type == "Terminated" })
	require.GreaterOrEqual(t, at, 0, "it has a Terminated event")
	require.Equal(t, "5", events[at].Details["exit_code"])

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
	nothingRuns(t, c)
	eventually(t, "a server that leads and collects garbage", func() (bool, string) {
		err := c.System().GarbageCollect()
		return err == nil, fmt.Sprint(err)
	})
	a.Stop()
}
