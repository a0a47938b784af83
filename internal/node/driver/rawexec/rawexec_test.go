package rawexec_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/cgroup"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/driver/drivertest"
	"github.com/drover-project/drover/internal/node/driver/rawexec"
	"github.com/drover-project/drover/internal/node/supervisor/guest/server"
	"github.com/drover-project/drover/internal/sharetest"
)

// The test program is its own drover-init.
func TestMain(m *testing.M) {
	if os.Args[0] == "drover-init" {
		os.Exit(server.Main())
	}
	drivertest.SweepGroupParents()
	goleak.VerifyTestMain(m)
}

func config(t *testing.T) rawexec.Config {
	t.Helper()
	sharetest.Take(t)
	exe, err := os.Executable()
	require.NoError(t, err)
	return rawexec.Config{Enabled: true, Binary: exe, CoreMHz: 1000, Clock: clock.Wall{}, Log: slog.New(slog.DiscardHandler)}
}

func harness(t *testing.T, cfg rawexec.Config) drivertest.Harness {
	t.Helper()
	h := drivertest.Harness{
		New: func(t *testing.T) driver.Driver {
			t.Helper()
			own := cfg
			if own.Cgroups != nil { // both ways to have a supervisor are tried
				own.IdleDir = filepath.Join(t.TempDir(), "idle")
			}
			d := rawexec.New(own)
			t.Cleanup(func() { require.NoError(t, d.Close()) })
			return d
		},
		Config: func(p drivertest.Program) map[string]any {
			return map[string]any{"command": "/bin/sh", "args": []any{"-c", p.ShellScript()}}
		},
		Missing: map[drivertest.Ability]string{drivertest.Isolation: "it has none"},
	}
	if os.Getuid() != 0 {
		h.Missing[drivertest.Users] = "an agent without root runs everything as itself"
	}
	return h
}

func TestConformance(t *testing.T) {
	t.Parallel()
	h := harness(t, config(t))
	h.Missing[drivertest.Groups] = "it is run without"
	drivertest.Run(t, h)
}

func TestConformanceWithControlGroups(t *testing.T) {
	t.Parallel()
	m, err := cgroup.New(cgroup.Config{Parent: drivertest.GroupParent(t)})
	if err != nil || m.Info().Version == cgroup.None {
		t.Logf("this machine has no control groups: %v", err)
		return
	}
	t.Cleanup(func() { require.NoError(t, m.Close(clock.Wall{})) })
	cfg := config(t)
	cfg.Cgroups = m
	drivertest.Run(t, harness(t, cfg))
}

func TestDisabledUnlessEnabled(t *testing.T) {
	t.Parallel()
	d := rawexec.New(rawexec.Config{Clock: clock.Wall{}})
	require.False(t, d.Fingerprint(t.Context()).Healthy)
	_, err := d.Start(t.Context(), driver.Spec{})
	require.Equal(t, drover.Forbidden, drover.CodeOf(err))
}

// TestVolumesAreRefused: the mount was left out without a word, and what the task wrote was gone with its allocation.
func TestVolumesAreRefused(t *testing.T) {
	t.Parallel()
	d := rawexec.New(config(t))
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	options := map[string]any{"command": "/bin/true"}
	task := &drover.Task{Name: "web", Driver: rawexec.Name, Config: options}
	require.NoError(t, d.Validate(task))
	task.VolumeMounts = []*drover.VolumeMount{{Volume: "data", Destination: "/data"}}
	err := d.Validate(task)
	require.Equal(t, drover.Invalid, drover.CodeOf(err))
	require.ErrorContains(t, err, "volume_mount: the driver raw_exec mounts no volumes")
	_, err = d.Start(t.Context(), driver.Spec{Config: options, Mounts: []driver.Mount{{Source: t.TempDir(), Target: "/data"}}})
	var failed *driver.StartError
	require.ErrorAs(t, err, &failed)
	require.False(t, failed.Recoverable)
	require.ErrorContains(t, err, "mounts no volumes")
}

// Without control groups nothing holds a task to a number of processes: the node says so.
func TestItSaysWhatItDoesNotLimit(t *testing.T) {
	t.Parallel()
	info := rawexec.New(rawexec.Config{Enabled: true, Clock: clock.Wall{}}).Fingerprint(t.Context())
	require.True(t, info.Healthy)
	require.Contains(t, info.Attributes["driver.raw_exec.weaker"], "number of processes are not limited")
	require.Contains(t, info.HealthDescription, info.Attributes["driver.raw_exec.weaker"])
	m, err := cgroup.New(cgroup.Config{Parent: drivertest.GroupParent(t)})
	if err != nil || !m.Info().Has("memory") || !m.Info().Has("pids") || !m.Info().Has("cpu") {
		t.Logf("this machine has no control groups for the rest: %v", err)
		return
	}
	t.Cleanup(func() { require.NoError(t, m.Close(clock.Wall{})) })
	info = rawexec.New(rawexec.Config{Enabled: true, Clock: clock.Wall{}, Cgroups: m}).Fingerprint(t.Context())
	require.Equal(t, "Healthy", info.HealthDescription)
	require.NotContains(t, info.Attributes, "driver.raw_exec.weaker")
}

func TestExecutionLimitsInControlGroups(t *testing.T) {
	t.Parallel()
	m, err := cgroup.New(cgroup.Config{Parent: drivertest.GroupParent(t)})
	if err != nil || !m.Info().Has("memory") || !m.Info().Has("pids") {
		t.Logf("this machine has no control groups for it: %v", err)
		return
	}
	t.Cleanup(func() { require.NoError(t, m.Close(clock.Wall{})) })
	cfg := config(t)
	cfg.Cgroups = m
	dir := t.TempDir()
	h, err := rawexec.New(cfg).Start(t.Context(), driver.Spec{
		AllocID: "limits", TaskName: "t", ID: "limits/t/1", Pool: true, Dirs: driver.Dirs{Task: dir, State: dir + "/state"},
		Config: map[string]any{"pids_limit": 20},
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, h.Destroy(context.Background())) }()
	run := func(script string, l drover.Limits) (string, *execution.Receipt) {
		s, err := h.(driver.Execer).StartExecution(t.Context(), execution.Spec{Argv: []string{"/bin/sh", "-c", script}, Limits: l})
		require.NoError(t, err)
		var out string
		for {
			f, err := s.Next(t.Context())
			require.NoError(t, err)
			out += string(f.Data)
			if f.Receipt != nil {
				return out, f.Receipt
			}
		}
	}
	_, r := run("exec tail /dev/zero", drover.Limits{MemoryMB: 16})
	require.Equal(t, execution.CauseOOM, r.Cause)
	require.Equal(t, 137, r.ExitCode)
	out, r := run("for i in 1 2 3 4 5 6 7 8 9 10; do sleep 600 & done; echo started", drover.Limits{Pids: 4})
	require.NotEqual(t, "started\n", out)
	require.Less(t, r.Wall.Seconds(), 60.0, "the sleeps were not waited for")
	out, r = run("for i in $(seq 40); do sleep 600 & done; echo started", drover.Limits{})
	require.NotEqual(t, "started\n", out, "the runner's own limit")
	require.Less(t, r.Wall.Seconds(), 60.0)
	_, r = run("i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; (setsid sleep 600 &)", drover.Limits{})
	require.Equal(t, execution.CauseExited, r.Cause)
	require.Positive(t, r.UserCPU+r.SystemCPU)
	_, r = run("echo next", drover.Limits{})
	require.Zero(t, r.ExitCode)
}

func TestNothingSurvivesAKilledSupervisor(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := rawexec.New(config(t))
	spec := driver.Spec{
		AllocID: "orphaned-" + filepath.Base(dir), TaskName: "t", ID: "orphaned/t/1", Dirs: driver.Dirs{Task: dir, State: dir + "/state"},
		Config: map[string]any{"command": "sleep", "args": []string{"983.1"}},
	}
	spec.Env = map[string]string{"NOMAD_ALLOC_ID": spec.AllocID, "NOMAD_TASK_NAME": "t"}
	h, err := d.Start(t.Context(), spec)
	require.NoError(t, err)
	text, err := os.ReadFile(dir + "/state/pid")
	require.NoError(t, err)
	var pid int
	_, err = fmt.Sscan(string(text), &pid)
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	exit, err := h.Wait(t.Context())
	require.NoError(t, err)
	require.Error(t, exit.Err)
	require.Equal(t, 137, exit.Code)
	_, err = d.Attach(t.Context(), h.State())
	require.ErrorIs(t, err, driver.ErrGone)
	require.NoError(t, h.Destroy(t.Context()))
	found, err := exec.Command("pgrep", "-f", "^sleep 983.1").Output()
	require.Error(t, err, string(found))
}
