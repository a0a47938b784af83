//go:build !windows

package flock

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func opened(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// TestCloseFreesTheLockForAllHolders: a child that was just forked has a copy of the descriptor, as a duplicate is.
func TestCloseFreesTheLockForAllHolders(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	first := opened(t, path)
	require.True(t, TryExclusive(first))
	inherited, err := unix.FcntlInt(first.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	require.NoError(t, err)
	defer unix.Close(inherited)
	second := opened(t, path)
	require.False(t, TryExclusive(second))
	require.False(t, TryShared(second))
	require.NoError(t, Close(first))
	require.True(t, TryExclusive(second))
}

func TestShared(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	first, second := opened(t, path), opened(t, path)
	require.NoError(t, Shared(first))
	require.NoError(t, Shared(second))
	require.False(t, TryExclusive(first))
	require.NoError(t, Close(second))
	require.NoError(t, Exclusive(first))
}
