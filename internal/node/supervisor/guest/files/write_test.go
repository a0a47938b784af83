package files

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

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

// TestADraftTakesThePlaceOfWhatIsThere: a new file is linked to its path. Anything else is replaced by a rename, also what the
// guest puts there between the look and the link; a directory and what a symbolic link leads to stay.
func TestADraftTakesThePlaceOfWhatIsThere(t *testing.T) {
	t.Parallel()
	g := newGuest(t)
	at := time.Date(2020, 2, 3, 4, 5, 6, 7000, time.UTC)
	write := func(p, text string) error {
		return g.replace(p, 0o4751, ids{uid: os.Getuid(), gid: os.Getgid()}, at, strings.NewReader(text))
	}
	whole := func(p, text string) {
		st, err := os.Lstat(p)
		require.NoError(t, err)
		require.Equal(t, os.ModeSetuid|0o751, st.Mode())
		require.True(t, st.ModTime().Equal(at), st.ModTime())
		data, err := os.ReadFile(p)
		require.NoError(t, err)
		require.Equal(t, text, string(data))
	}
	p := g.path("new")
	require.NoError(t, write(p, "first"))
	whole(p, "first")
	require.NoError(t, write(p, "second"))
	whole(p, "second")

	link := g.path("link")
	require.NoError(t, os.Symlink(p, link))
	require.NoError(t, write(link, "third"))
	whole(link, "third")
	whole(p, "second")
	require.ErrorIs(t, write(g.dir, ""), syscall.EISDIR)

	d, err := g.openDraft(g.dir)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(g.path("late"), []byte("the guest's, in between"), 0o600))
	require.NoError(t, fill(d.f, strings.NewReader("ours")))
	require.NoError(t, d.place(g.path("late")))
	d.close(true)
	data, err := os.ReadFile(g.path("late"))
	require.NoError(t, err)
	require.Equal(t, "ours", string(data))

	entries, err := os.ReadDir(g.dir)
	require.NoError(t, err)
	require.Len(t, entries, 3, "no draft is left")
}
