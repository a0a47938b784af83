package cgroup

import (
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/drover-project/drover/internal/node/driver/drivertest"
)

// A second manager, as doctor's, that was made while the first thread of the agent forked a supervisor took the group where
// that thread was for the agent's own. Threads were sent "back" to it, and it could not be removed any more.
func TestAThreadThatIsAwayIsNotAsked(t *testing.T) {
	t.Parallel()
	m, err := New(Config{Parent: drivertest.GroupParent(t)})
	require.NoError(t, err)
	t.Cleanup(func() { m.removeParent(t) })
	if m.info.Version != V1 {
		t.Skipf("only on v1 a thread can be away, here is %s", m.info.Version)
	}
	g, err := m.Create("t", Limits{}, 0)
	require.NoError(t, err)
	own := func() string {
		text, err := ownGroups()
		require.NoError(t, err)
		return string(text)
	}
	home := own()
	require.NotContains(t, home, m.parent)
	away := func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		back, err := g.JoinInit()
		require.NoError(t, err)
		require.Contains(t, own(), m.parent, "each thread is asked where it is itself")
		other := make(chan string)
		go func() { other <- own() }() // ends at once
		require.Equal(t, home, <-other)
		require.NoError(t, back())
		require.Equal(t, home, own())
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if unix.Gettid() != os.Getpid() {
		away()
	} else { // the first one tells the same about itself as about the process
		done := make(chan struct{})
		go func() { defer close(done); away() }() // ends at once
		<-done
	}
	require.NoError(t, g.removeDirs())
}
