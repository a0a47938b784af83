package sandbox

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/drover-project/drover/internal/node/supervisor"
)

func TestNamespacesAreTried(t *testing.T) {
	t.Parallel()
	binary, err := supervisor.Binary(t.TempDir())
	require.NoError(t, err)
	require.NoError(t, namespaces(binary))
}

// The kernel makes no user namespaces in a chroot: that was told by no fingerprint, and each start failed with it.
func TestNamespacesOfAChroot(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can change the root")
	}
	dir := t.TempDir()
	binary, err := supervisor.Binary(dir)
	require.NoError(t, err)
	failed := make(chan error)
	go func() { // ends with its thread, which nobody else may have from now on
		runtime.LockOSThread()
		err := unix.Unshare(unix.CLONE_FS)
		if err == nil {
			err = unix.Chroot(filepath.Dir(binary))
		}
		if err == nil {
			err = namespaces("/" + filepath.Base(binary))
		}
		failed <- err
	}()
	err = <-failed
	require.ErrorIs(t, err, unix.EPERM)
	require.ErrorContains(t, err, "user namespaces cannot be made")
}
