package sandbox

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/driver/drivertest"
)

// restart is what a new agent has: another driver on the same folders.
func (b *bench) restart() *bench { return &bench{Driver: New(b.cfg), dir: b.dir, parent: b.parent} }

func TestAttachToAWarmRunner(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	h := b.warm(t, nil)
	s, err := h.StartExecution(t.Context(), execution.Spec{
		ID: "long", Argv: []string{"/bin/sh", "-c", "echo one; read x; echo $x; exit 5"}, Stdin: true, Detach: time.Minute,
	})
	require.NoError(t, err)
	for got := ""; got != "one\n"; {
		f, err := s.Next(t.Context())
		require.NoError(t, err)
		got += string(f.Data)
	}
	require.NoError(t, h.Last().Close()) // as when the agent is killed
	b2 := b.restart()
	again, err := b2.Attach(t.Context(), drivertest.ThroughJSON(t, h.State()))
	require.NoError(t, err)
	h2 := again.(*handle)
	list, err := h2.Executions(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.True(t, list[0].Running)
	s2, err := h2.AttachExecution(t.Context(), "long", execution.Offsets{Stdout: 4})
	require.NoError(t, err)
	require.NoError(t, s2.Write(t.Context(), []byte("two\n")))
	r, err := drivertest.Drain(t.Context(), s2)
	require.NoError(t, err)
	require.Equal(t, "two\n", r.Out)
	require.Equal(t, 5, r.Receipt.ExitCode)
	require.Equal(t, "x\n", drivertest.Sh(t, h2, "echo x").Out)
	_, err = h2.Usage(t.Context())
	require.NoError(t, err)
	pid := h.box.pid
	require.NoError(t, h2.Destroy(t.Context()))
	require.Eventually(
		t,
		func() bool { return hostProcesses(t, pid) == 0 },
		time.Minute,
		10*time.Millisecond,
	) // its parent, the first agent, has to reap it
	_, err = b2.Attach(t.Context(), h.State())
	require.ErrorIs(t, err, driver.ErrGone)
}

func TestAttachLearnsTheExit(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	h := b.run(t, b.spec(t, map[string]any{"command": "/bin/sh", "args": []any{"-c", "exit 9"}}))
	require.NoError(t, h.Last().Close())
	again, err := b.restart().Attach(t.Context(), h.State())
	require.NoError(t, err)
	exit, err := again.Wait(t.Context())
	require.NoError(t, err)
	require.Equal(t, 9, exit.Code)
	require.NoError(t, again.Destroy(t.Context()))
}

func TestAttachWhenTheSupervisorWasKilled(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	h := b.warm(t, nil)
	require.NoError(t, unix.Kill(h.box.pid, unix.SIGKILL))
	exit, err := h.Wait(t.Context())
	require.NoError(t, err)
	require.Error(t, exit.Err)
	require.NotZero(t, exit.Code)
	_, err = b.restart().Attach(t.Context(), h.State())
	require.ErrorIs(t, err, driver.ErrGone)
	names, err := b.cfg.Cgroups.List()
	require.NoError(t, err)
	require.Empty(t, names, "Attach clears away what is gone")
}

// TestAttachToAnInterruptedStart: the agent was killed before it knew what to keep, and the task is not to start again.
func TestAttachToAnInterruptedStart(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	h := b.warm(t, nil)
	interrupted := h.State()
	interrupted.Data = nil
	interrupted.StateDir = h.box.stateDir
	_, err := b.restart().Attach(t.Context(), interrupted)
	require.ErrorIs(t, err, driver.ErrGone)
	_, err = h.Wait(t.Context())
	require.NoError(t, err)
	names, err := b.cfg.Cgroups.List()
	require.NoError(t, err)
	require.Empty(t, names)
	require.NoDirExists(t, h.box.stateDir)
}

// TestSweepAfterAnAgentForgot: the agent died before it wrote the sandbox down.
func TestSweepAfterAnAgentForgot(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	h := b.warm(t, nil)
	swept, err := b.cfg.Cgroups.Sweep(t.Context(), b.cfg.Clock, func(string) bool { return false })
	require.NoError(t, err)
	require.Equal(t, []string{h.box.group.Name()}, swept)
	_, err = h.Wait(t.Context())
	require.NoError(t, err)
	require.Zero(t, hostProcesses(t, h.box.pid))
}

func TestAPidThatBelongsToSomebodyElseIsLeftAlone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	h := b.warm(t, nil)
	other := &box{pid: h.box.pid, startTicks: h.box.startTicks + 1}
	require.NoError(t, b.kill(t.Context(), other))
	require.Equal(t, "alive\n", drivertest.Sh(t, h, "echo alive").Out)
}

func TestStop(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	h := b.run(t, b.spec(t, map[string]any{"command": "/bin/sh", "args": []any{"-c", "trap 'exit 4' INT; while :; do sleep 0.01; done"}}))
	require.Eventually(t, func() bool { return drivertest.Sh(t, h, "pgrep -c sleep").Receipt.Wall > 0 }, time.Minute, time.Millisecond)
	require.NoError(t, h.Stop(t.Context(), "SIGINT", 10*time.Second))
	exit, err := h.Wait(t.Context())
	require.NoError(t, err)
	require.Contains(t, []int{4, 130}, exit.Code)
	deaf := b.run(
		t,
		b.spec(t, map[string]any{"command": "/bin/sh", "args": []any{"-c", "trap '' INT TERM; sleep 1000 & wait; wait; sleep 1000"}}),
	)
	require.NoError(t, deaf.Stop(t.Context(), "", 50*time.Millisecond))
	exit, err = deaf.Wait(t.Context())
	require.NoError(t, err)
	require.NotZero(t, exit.Code)
	warm := b.warm(t, nil)
	require.NoError(t, warm.Stop(t.Context(), "", time.Second))
	exit, err = warm.Wait(t.Context())
	require.NoError(t, err)
	require.NotZero(t, exit.Code)
	require.NoError(t, exit.Err)
}

func TestStartErrors(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for want, config := range map[string]map[string]any{
		`unknown key "comand"`:       {"comand": "x"},
		"nothing to run":             {},
		"there is no layout":         {"image": "/no/such", "command": "x"},
		"127.0.0.1:1/x":              {"image": "127.0.0.1:1/x:1", "command": "x"},
		"/no/such/program":           {"command": "/no/such/program"},
		"privileged":                 {"command": "x", "privileged": true},
		"none of none, host, bridge": {"command": "x", "network_mode": "cni"},
		"sys_admin":                  {"command": "x", "cap_add": []any{"sys_admin"}},
	} {
		_, err := b.Start(t.Context(), b.spec(t, config))
		require.ErrorContains(t, err, want)
		var start *driver.StartError
		require.ErrorAs(t, err, &start)
		require.Equal(t, want == "127.0.0.1:1/x", start.Recoverable, "%v", err)
	}
	spec := b.spec(t, map[string]any{"command": "/bin/true"})
	spec.User = "jane"
	_, err := b.Start(t.Context(), spec)
	require.ErrorContains(t, err, `unknown user "jane"`)
	missing := b.spec(t, map[string]any{"command": "/bin/true"})
	missing.Mounts = []driver.Mount{{Source: "/no/such", Target: "/m"}}
	_, err = b.Start(t.Context(), missing)
	require.ErrorContains(t, err, "/m")
	require.False(t, errors.Is(err, driver.ErrGone))
}
