//go:build !windows

package logsink

import (
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A pipe or a device in place of a file is never renamed: that of /dev/null would take it from the machine.
func TestWhatIsNoFileIsNotReplaced(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := filepath.Join(folder, "pipe")
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	l, _ := opened(t, Config{File: &File{Path: path, RotateBytes: 1}})
	for range 3 {
		slog.New(l.Handler()).Info("hello")
	}
	require.Equal(t, []string{"pipe"}, files(t, folder))
	info, err := os.Lstat(path)
	require.NoError(t, err)
	require.Equal(t, os.ModeNamedPipe, info.Mode().Type())
}
