package docker

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/dockerdtest"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/driver/drivertest"
)

// daemon starts a docker daemon for one test.
func daemon(t *testing.T, options ...string) *dockerdtest.Daemon {
	t.Helper()
	d, err := dockerdtest.Start(options...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Stop()) })
	return d
}

// TestDaemonRestartWithLiveRestore is not noticed by tasks and executions.
func TestDaemonRestartWithLiveRestore(t *testing.T) {
	t.Parallel()
	dockerd := daemon(t, "--live-restore")
	b := newBench(t, func(c *Config) { c.Endpoint = dockerd.Endpoint })
	require.Equal(t, "Healthy", b.Fingerprint(t.Context()).HealthDescription)
	h := b.run(t, b.spec(t, script2("sleep 600", nil)))
	require.NoError(t, dockerd.Restart())
	require.Equal(t, "still here\n", drivertest.Sh(t, h, "echo still here").Out)
	_, err := h.Usage(t.Context())
	require.NoError(t, err)
	again, err := b.restart(t).Attach(t.Context(), h.State())
	require.NoError(t, err)
	require.NoError(t, again.Stop(t.Context(), "", 100*time.Millisecond))
	exit, err := again.Wait(t.Context())
	require.NoError(t, err)
	require.NotZero(t, exit.Code)
	require.NoError(t, again.Destroy(t.Context()))
}

// TestDaemonStops without live-restore: it kills the containers, which is told as such; Destroy works all the same, and
// what the daemon kept is swept when it is back.
func TestDaemonStops(t *testing.T) {
	t.Parallel()
	dockerd := daemon(t, "--shutdown-timeout", "1")
	b := newBench(t, func(c *Config) { c.Endpoint, c.DaemonWait = dockerd.Endpoint, time.Millisecond })
	b.Restored(t.Context())
	require.Contains(t, b.Fingerprint(t.Context()).HealthDescription, "live-restore is off")
	h := b.run(t, b.spec(t, script2("sleep 600", nil)))
	require.NoError(t, dockerd.Halt())
	exit, err := h.Wait(t.Context())
	require.NoError(t, err)
	require.ErrorContains(t, exit.Err, "daemon was stopped")
	require.NotZero(t, exit.Code)
	info := b.Fingerprint(t.Context())
	require.False(t, info.Healthy)
	require.Contains(t, info.HealthDescription, "no docker daemon")
	_, err = b.Start(t.Context(), b.spec(t, script2("true", nil)))
	var start *driver.StartError
	require.ErrorAs(t, err, &start)
	require.True(t, start.Recoverable)
	require.NoError(t, h.Destroy(t.Context()))
	patient := b.restart(t)
	patient.cfg.DaemonWait = time.Minute
	waiting := b.spec(t, script2("true", nil))
	told, started := make(chan string, 1), make(chan error, 1)
	waiting.Tell = func(text string) { told <- text }
	go func() { // ends with the start
		late, err := patient.Start(t.Context(), waiting)
		if err == nil {
			err = late.Destroy(t.Context())
		}
		started <- err
	}()
	require.Contains(t, <-told, "Waiting for the docker daemon")
	require.NoError(t, dockerd.Restart())
	require.NoError(t, <-started)
	n, err := b.Sweep(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.True(t, b.Fingerprint(t.Context()).Healthy)
}

// TestDaemonHangs: tasks, executions and samples go on, a task can be ended, and what the daemon kept is swept when it
// goes on.
func TestDaemonHangs(t *testing.T) {
	t.Parallel()
	dockerd := daemon(t)
	b := newBench(t, func(c *Config) { c.Endpoint, c.RemoveWait = dockerd.Endpoint, 100*time.Millisecond })
	b.Restored(t.Context())
	h := b.run(t, b.spec(t, script2("trap '' TERM; sleep 600", nil)))
	pid, err := dockerd.Pid()
	require.NoError(t, err)
	goOn := sync.OnceFunc(func() { require.NoError(t, syscall.Kill(pid, syscall.SIGCONT)) })
	t.Cleanup(goOn) // before the daemon is stopped
	require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
	require.Eventually(t, func() bool { return stands(t, pid) }, patience, tick, "a thread that forks stops late")
	require.Equal(t, "still here\n", drivertest.Sh(t, h, "echo still here").Out)
	_, err = h.Usage(t.Context())
	require.NoError(t, err)
	asking, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err = b.askUsage(asking, h.box) // what has no cgroup files that can be read
	require.Error(t, err)
	require.NotErrorIs(t, err, driver.ErrGone, "it is tried again")
	require.NoError(t, h.Stop(t.Context(), "", 10*time.Millisecond))
	exit, err := h.Wait(t.Context())
	require.NoError(t, err)
	require.NotZero(t, exit.Code)
	require.NoError(t, h.Destroy(t.Context()))
	goOn()
	require.Eventually(t, func() bool { // it may do what it was asked before, too
		_, err := b.Sweep(t.Context())
		return err == nil && len(b.containers(t)) == 0
	}, patience, tick)
}

// TestSweepSparesWhatIsKnownAndOthers.
func TestSweepSparesWhatIsKnownAndOthers(t *testing.T) {
	t.Parallel()
	b, other := newBench(t), newBench(t)
	known, lost := b.warm(t, nil), b.warm(t, nil)
	others := other.warm(t, nil)
	after := b.restart(t) // of the two it hears of one
	n, err := after.Sweep(t.Context())
	require.NoError(t, err)
	require.Zero(t, n, "tasks are being attached")
	_, err = after.Attach(t.Context(), drivertest.ThroughJSON(t, known.State()))
	require.NoError(t, err)
	after.Restored(t.Context())
	exit, err := lost.Wait(t.Context())
	require.NoError(t, err)
	require.Error(t, exit.Err)
	require.Equal(t, "ok\n", drivertest.Sh(t, known, "echo ok").Out)
	require.Equal(t, "ok\n", drivertest.Sh(t, others, "echo ok").Out)
	_, err = after.Attach(t.Context(), lost.State())
	require.ErrorIs(t, err, driver.ErrGone)
}

// TestALeftoverOfTheSameNameIsReplaced: the agent was killed while it started the task.
func TestALeftoverOfTheSameNameIsReplaced(t *testing.T) {
	t.Parallel()
	replacesALeftover(t, newBench(t))
}

func replacesALeftover(t *testing.T, b *bench) {
	t.Helper()
	spec := b.spec(t, script2("sleep 600", map[string]any{"network_mode": "none"}))
	first := b.run(t, spec)
	second := spec
	second.Dirs.State = filepath.Join(filepath.Dir(spec.Dirs.State), "again")
	h := b.run(t, second)
	exit, err := first.Wait(t.Context())
	require.NoError(t, err)
	require.Error(t, exit.Err)
	r := drivertest.Do(t, h, execution.Spec{Argv: []string{"true"}})
	require.Zero(t, r.Receipt.ExitCode)
	require.Len(t, b.containers(t), 1)
}

// stands reports whether all threads of a process are stopped.
func stands(t *testing.T, pid int) bool {
	t.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	require.NoError(t, err)
	for _, path := range threads {
		stat, err := os.ReadFile(path)
		if _, rest, _ := strings.Cut(string(stat), ") "); err == nil && !strings.HasPrefix(rest, "T") {
			return false
		}
	}
	return true
}
