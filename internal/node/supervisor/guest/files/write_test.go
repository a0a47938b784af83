package files

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/node/supervisor/guest/account"
	"github.com/drover-project/drover/internal/node/supervisor/wire"
)

// Only what is to be emptied is asked here: a test that empties the root once would be one too many.
func TestTheRootIsNotEmptied(t *testing.T) {
	t.Parallel()
	for _, p := range []string{"/*", "//*"} {
		_, err := emptied(p)
		require.Equal(t, drover.Invalid, drover.CodeOf(err), p)
	}
	dir, err := emptied("/work/*")
	require.NoError(t, err)
	require.Equal(t, "/work", dir)
}

func TestAWorkingDirectoryIsEmptiedAndStays(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"a/b", ".hidden", "c"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o750))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	left := func() (names []string) {
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
	boot := &wire.Boot{WorkDir: dir}
	s := New(account.Open("/etc/passwd", "/etc/group"), func() *wire.Boot { return boot })
	remove := func(p string) { require.NoError(t, s.Apply(execution.FileChange{Path: p, Delete: true}, nil)) }
	remove("./*")
	require.Equal(t, []string{".hidden"}, left())
	remove("./")
	require.Empty(t, left())
	remove("none/*")
	boot = &wire.Boot{WorkDir: filepath.Join(dir, "gone")}
	remove(".")
}
