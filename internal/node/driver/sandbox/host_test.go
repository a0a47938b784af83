package sandbox

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/node/driver/drivertest"
)

// TestWhatIsNotForEverybodyInTheMachinesPrograms: W5 of the review of 2026-11-22. The sandbox's root read files below /usr
// that only the machine's root may, and its users those of the machine's users with their number.
func TestWhatIsNotForEverybodyInTheMachinesPrograms(t *testing.T) { // it writes below /usr/local, once
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	dir, err := os.MkdirTemp("/usr/local", "drover-test-")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	require.NoError(t, os.Chmod(dir, 0o755))
	write := func(name string, uid int, mode os.FileMode) {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte("SECRET"), 0o600))
		require.NoError(t, os.Chown(path, uid, uid))
		require.NoError(t, os.Chmod(path, mode))
	}
	write("roots", 0, 0o600)
	write("groups", 0, 0o640)
	write("users", 1000, 0o600)
	write("open", 0, 0o644)
	write("closed/inside", 0, 0o644)
	require.NoError(t, os.Chmod(filepath.Join(dir, "closed"), 0o700))
	h := newBench(t).warm(t, nil)
	for _, name := range []string{"roots", "groups", "users", "closed/inside"} {
		refused(t, h, "reading it as root", "cat "+filepath.Join(dir, name))
		require.NotZero(t, drivertest.Sh(t, h, "cat "+filepath.Join(dir, name)).Receipt.ExitCode, name)
	}
	require.Equal(t, "SECRET", drivertest.Sh(t, h, "cat "+filepath.Join(dir, "open")).Out)
	require.Equal(t, "0\n", drivertest.Root(t, h, "stat -c %u /etc/passwd").Out, "what is the image's own is root's")
}
