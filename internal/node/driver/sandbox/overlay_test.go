package sandbox

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestOverlayMayBeAModule that nothing has loaded yet: so it is on a fresh Debian.
func TestOverlayMayBeAModule(t *testing.T) {
	t.Parallel()
	answer := func(err error) func() error { return func() error { return err } }
	root := t.TempDir()
	write := func(file, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, file)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(root, file), []byte(text), 0o644))
	}
	require.True(t, overlay(root, "6.1", answer(nil)), "asking loaded it")
	require.False(t, overlay(root, "6.1", answer(unix.ENODEV)), "there is none to load")
	require.True(t, overlay(root, "6.1", answer(unix.EPERM)), "unknown: it is tried")
	write("proc/filesystems", "nodev\tproc\n\text4\n")
	require.False(t, overlay(root, "6.1", answer(unix.EPERM)))
	write("lib/modules/6.1/modules.dep", "kernel/fs/ext4/ext4.ko: \nkernel/fs/overlayfs/overlay.ko.xz:\n")
	require.True(t, overlay(root, "6.1", answer(unix.EPERM)), "a user's sandbox loads it")
	require.False(t, overlay(root, "6.2", answer(unix.EPERM)), "another kernel's")
	write("proc/filesystems", "nodev\toverlay\n")
	require.True(t, overlay(root, "6.2", answer(unix.EPERM)))
	require.True(t, Overlay(), "this machine's")
}
