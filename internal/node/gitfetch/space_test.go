package gitfetch

import (
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// A thread that cannot come back from git's network is given up, and the goroutine that asked for it stays in the agent's.
func TestAThreadThatCannotComeBack(t *testing.T) {
	t.Parallel()
	if !mayUnshare() {
		t.Skip("it takes root")
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	here, err := os.Readlink("/proc/thread-self/ns/net")
	require.NoError(t, err)
	l, space, err := listenApart(func(int, int) error { return unix.EPERM })
	require.ErrorIs(t, err, unix.EPERM)
	require.ErrorContains(t, err, "leaving git's network")
	require.Nil(t, l)
	require.Nil(t, space)
	now, err := os.Readlink("/proc/thread-self/ns/net")
	require.NoError(t, err)
	require.Equal(t, here, now)

	l, space, err = listenApart(unix.Setns)
	require.NoError(t, err)
	require.NoError(t, l.Close())
	require.NoError(t, space.Close())
	now, err = os.Readlink("/proc/thread-self/ns/net")
	require.NoError(t, err)
	require.Equal(t, here, now)
}
