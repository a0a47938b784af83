package forked

import (
	"context"
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestWhatWasJustReadIsUnmounted: unix.Unmount alone fails here now and then.
func TestWhatWasJustReadIsUnmounted(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	ctx, cancel := context.WithCancel(t.Context())
	var others sync.WaitGroup
	defer others.Wait()
	defer cancel()
	for range 4 {
		others.Go(func() { // ends with ctx
			for ctx.Err() == nil {
				_ = exec.Command("true").Run()
			}
		})
	}
	dir := t.TempDir()
	for range 300 {
		require.NoError(t, unix.Mount("none", dir, "tmpfs", 0, ""))
		_, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.NoError(t, Unmount(dir, unix.UMOUNT_NOFOLLOW))
	}
	require.NoError(t, unix.Mount("none", dir, "tmpfs", 0, ""))
	used, err := os.Open(dir)
	require.NoError(t, err)
	require.ErrorIs(t, Unmount(dir, unix.UMOUNT_NOFOLLOW), unix.EBUSY)
	require.NoError(t, used.Close())
	require.NoError(t, Unmount(dir, unix.UMOUNT_NOFOLLOW))
}
