package diskuse

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

const mb = 1 << 20

func fill(t *testing.T, path string, size int) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(strings.Repeat("x", size)), 0o600))
}

func TestMeasure(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "a/b"), 0o700))
	fill(t, filepath.Join(dir, "a/b/one"), mb)
	require.NoError(t, os.Link(filepath.Join(dir, "a/b/one"), filepath.Join(dir, "again")))
	require.NoError(t, os.Symlink("/usr", filepath.Join(dir, "a/usr")))
	require.NoError(t, os.Symlink("..", filepath.Join(dir, "a/loop")))
	f, err := os.Create(filepath.Join(dir, "sparse"))
	require.NoError(t, err)
	require.NoError(t, f.Truncate(100*mb))
	require.NoError(t, f.Close())
	u, err := Measure(dir, Usage{})
	require.NoError(t, err)
	require.Equal(t, int64(7), u.Files)
	require.InDelta(t, mb, u.Bytes, 64<<10)
	_, err = Measure(dir, Usage{Files: 3})
	require.ErrorIs(t, err, ErrMore)
	_, err = Measure(dir, Usage{Bytes: mb / 2})
	require.ErrorIs(t, err, ErrMore)
	_, err = Measure(filepath.Join(dir, "a/usr"), Usage{})
	require.Error(t, err, "a link is no folder")
	_, err = Measure(filepath.Join(dir, "none"), Usage{})
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestNestedTooDeeply(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at, err := unix.Open(dir, unix.O_PATH|unix.O_CLOEXEC, 0)
	require.NoError(t, err)
	for range 2 * maxDepth { // as a guest does it that wants paths to be too long
		require.NoError(t, unix.Mkdirat(at, "d", 0o700))
		next, err := unix.Openat(at, "d", unix.O_PATH|unix.O_CLOEXEC, 0)
		require.NoError(t, err)
		require.NoError(t, unix.Close(at))
		at = next
	}
	require.NoError(t, unix.Close(at))
	_, err = Measure(dir, Usage{})
	require.ErrorIs(t, err, ErrDeep)
}

func TestDeletedFilesCount(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	fill(t, path, 2*mb)
	f, err := os.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.Close() })
	require.NoError(t, os.Remove(path))
	require.InDelta(t, 2*mb, Deleted(dir, []int{os.Getpid(), os.Getpid()}).Bytes, 64<<10)
}
