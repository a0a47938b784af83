package process

import (
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/supervisor/spawn"
)

func TestHowChildrenEnd(t *testing.T) {
	t.Parallel()
	p := sh(t, "exit 3")
	p.wait(t)
	require.True(t, p.Status.Exited())
	require.Equal(t, 3, p.Status.ExitStatus())
	require.Positive(t, p.Usage.Maxrss)

	p = sh(t, "echo ready; sleep 1000")
	require.Equal(t, "ready", p.line(t))
	require.True(t, reaping.Signal(p.Child, syscall.SIGTERM))
	p.wait(t)
	require.Equal(t, syscall.SIGTERM, p.Status.Signal())
	require.False(t, reaping.Signal(p.Child, syscall.SIGTERM), "the number may be another's by now")
	require.False(t, reaping.Signal(Unstarted(), syscall.SIGTERM))

	_, err := reaping.Start(spawn.Spec{Path: "/none/at/all", Argv: []string{"x"}}, true)
	var failed *spawn.Error
	require.ErrorAs(t, err, &failed)
	require.Equal(t, spawn.StepExec, failed.Step)
}

// TestAGroupEndsWithItsLeader: the leader's process group is signalled as one, and what is left of it killed.
func TestAGroupEndsWithItsLeader(t *testing.T) {
	t.Parallel()
	p := start(t, true, nil, "/bin/sh", "-c", "trap '' TERM; sh -c 'echo $$; exec sleep 1000' & sleep 0; read x; exit 0")
	left, err := strconv.Atoi(p.line(t))
	require.NoError(t, err)
	require.NoError(t, p.in.Close())
	p.wait(t)
	require.Equal(t, 0, p.Status.ExitStatus())
	gone(t, left)
}

// gone waits until a process has ended.
func gone(t testing.TB, pid int) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; {
		changed := reaping.next()
		if p, ok := readProc(pid); !ok || !p.alive() {
			return
		}
		require.True(t, time.Now().Before(deadline), "%d lives", pid)
		waitChange(clock.Wall{}, changed, 10*time.Millisecond)
	}
}

// TestWhatOrphansUsed is told with their leader's end: the kernel tells it nobody else.
func TestWhatOrphansUsed(t *testing.T) {
	t.Parallel()
	p := sh(t, `sh -c '( i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done; echo burnt ) &'; read x`)
	require.Equal(t, "burnt", p.line(t))
	for deadline := time.Now().Add(patience); reaping.Orphaned(p.Child) == (Used{}); {
		require.True(t, time.Now().Before(deadline), "the orphan is counted")
		waitChange(clock.Wall{}, reaping.next(), 10*time.Millisecond)
	}
	require.NoError(t, p.in.Close())
	p.wait(t)
	used := reaping.Settle(p.Child)
	require.Positive(t, used.User+used.System)
	require.Positive(t, used.Peak)
	require.Equal(t, used, reaping.Orphaned(p.Child), "nothing is added any more")
}

func TestUsageAddsUp(t *testing.T) {
	t.Parallel()
	var u Used
	u.Add(syscall.Rusage{Utime: syscall.Timeval{Sec: 1}, Stime: syscall.Timeval{Usec: 5}, Maxrss: 10})
	u.Add(syscall.Rusage{Utime: syscall.Timeval{Usec: 1}, Maxrss: 7})
	require.Equal(t, Used{User: time.Second + time.Microsecond, System: 5 * time.Microsecond, Peak: 10 << 10}, u)
}

func TestAStartIsSeenByWhoWaitsForChanges(t *testing.T) {
	t.Parallel()
	changed := reaping.next()
	sh(t, "exit 0").wait(t)
	select {
	case <-changed:
	case <-time.After(patience):
		t.Fatal("nothing was told")
	}
}
