package files

import (
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
)

func (g *guest) mode(t testing.TB, name string) uint32 {
	t.Helper()
	var st syscall.Stat_t
	require.NoError(t, syscall.Lstat(g.path(name), &st))
	return st.Mode & 0o7777
}

func TestAWriteMakesTheFileAndItsFolders(t *testing.T) {
	t.Parallel()
	g := newGuest(t)
	require.NoError(t, g.write("a/b/c", "one"))
	require.Equal(t, "one", g.text(t, "a/b/c"))
	require.Equal(t, uint32(defaultFileMode), g.mode(t, "a/b/c"))
	require.NoError(t, g.Apply(execution.FileChange{Path: "a/b/c", Write: true, Mode: 0o104755}, strings.NewReader("two")))
	require.Equal(t, "two", g.text(t, "a/b/c"))
	require.Equal(t, uint32(0o4755), g.mode(t, "a/b/c"), "only the bits of a mode count")
	require.NoError(t, g.write("empty", ""))
	require.Empty(t, g.text(t, "empty"))
	require.Equal(t, []string{"a", "a/b", "a/b/c", "empty"}, g.names(t))
}

// TestAWriteReplaces: neither a link's target nor another name of the file changes with it.
func TestAWriteReplaces(t *testing.T) {
	t.Parallel()
	g := newGuest(t)
	g.put(t, "target", "kept")
	require.NoError(t, os.Symlink("target", g.path("link")))
	require.NoError(t, os.Link(g.path("target"), g.path("same")))
	require.NoError(t, g.write("link", "new"))
	require.NoError(t, g.write("same", "newer"))
	require.Equal(t, "kept", g.text(t, "target"))
	require.Equal(t, "new", g.text(t, "link"))
	info, err := os.Lstat(g.path("link"))
	require.NoError(t, err)
	require.True(t, info.Mode().IsRegular())
	require.NoError(t, syscall.Mkfifo(g.path("pipe"), 0o600))
	require.NoError(t, g.write("pipe", "x"), "and no reader of the pipe is waited for")
	require.Equal(t, "x", g.text(t, "pipe"))
}

// TestAWriteThatBreaksOffLeavesNothing: the old file stays whole, and nothing of the new one is there.
func TestAWriteThatBreaksOffLeavesNothing(t *testing.T) {
	t.Parallel()
	g := newGuest(t)
	require.NoError(t, g.write("f", "old"))
	for _, cause := range []error{io.ErrUnexpectedEOF, errors.New("lost")} {
		data := io.MultiReader(strings.NewReader(strings.Repeat("x", 200_000)), iotest.ErrReader(cause))
		err := g.Apply(execution.FileChange{Path: "f", Write: true}, data)
		require.ErrorIs(t, err, cause)
		err = g.Apply(execution.FileChange{Path: "fresh", Write: true}, iotest.ErrReader(cause))
		require.ErrorIs(t, err, cause)
	}
	require.Equal(t, "old", g.text(t, "f"))
	require.Equal(t, []string{"f"}, g.names(t))
	n := 0
	g.drafts.Range(func(any, any) bool { n++; return true })
	require.Zero(t, n, "no name is taken any more")
}

// TestReadersSeeAWholeFile while others write it.
func TestReadersSeeAWholeFile(t *testing.T) {
	t.Parallel()
	g := newGuest(t)
	require.NoError(t, g.write("f", strings.Repeat("0", 100_000)))
	var writers sync.WaitGroup
	for i := range 4 {
		writers.Go(func() {
			for range 25 {
				if err := g.write("f", strings.Repeat(string(rune('1'+i)), 100_000)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 100 {
		text, err := g.read(execution.FileRequest{Path: "f"})
		require.NoError(t, err)
		require.Equal(t, strings.Repeat(text[:1], 100_000), text)
	}
	writers.Wait()
	require.Equal(t, []string{"f"}, g.names(t))
}

func TestChangesThatAreRefused(t *testing.T) {
	t.Parallel()
	g := newGuest(t)
	g.put(t, "file", "kept")
	g.put(t, "dir/file", "kept")
	change := func(c execution.FileChange) drover.Code {
		return drover.CodeOf(g.Apply(c, strings.NewReader("new")))
	}
	for what, c := range map[string]execution.FileChange{
		"no path":              {Write: true},
		"no change":            {Path: "x"},
		"two changes":          {Path: "x", Write: true, Mkdir: true},
		"three changes":        {Path: "x", Write: true, Mkdir: true, Delete: true},
		"a name of a folder":   {Path: "x/", Write: true},
		"another one":          {Path: "x/.", Write: true},
		"a folder":             {Path: "dir", Write: true},
		"below a file":         {Path: "file/x", Write: true},
		"a folder over a file": {Path: "file", Mkdir: true},
		"a folder below one":   {Path: "file/x", Mkdir: true},
		"a file as a folder":   {Path: "file/", Delete: true},
		"the root":             {Path: "/", Delete: true},
		"the root otherwise":   {Path: "/../.", Delete: true},
		"a zero byte":          {Path: "a\x00", Write: true},
		"a long name":          {Path: strings.Repeat("n", 256), Write: true},
	} {
		require.Equal(t, drover.Invalid, change(c), what)
	}
	if os.Geteuid() == 0 {
		require.Equal(t, drover.Invalid, change(execution.FileChange{Path: "x", Write: true, Owner: "nobody-here"}))
	}
	require.Equal(t, "kept", g.text(t, "file"))
	require.Equal(t, []string{"dir", "dir/file", "file"}, g.names(t))
}

func TestFoldersAreMade(t *testing.T) {
	t.Parallel()
	g := newGuest(t)
	require.NoError(t, g.Apply(execution.FileChange{Path: "a/b", Mkdir: true}, nil))
	require.Equal(t, uint32(defaultDirMode), g.mode(t, "a/b"))
	require.Equal(t, uint32(parentMode), g.mode(t, "a"), "as folders on the way have it, whatever the umask")
	g.put(t, "a/b/kept", "")
	require.NoError(t, g.Apply(execution.FileChange{Path: "a/b/", Mkdir: true, Mode: 0o2710}, nil))
	require.Equal(t, uint32(0o2710), g.mode(t, "a/b"), "one that is there gets the mode")
	require.FileExists(t, g.path("a/b/kept"))
}

func TestDeleting(t *testing.T) {
	t.Parallel()
	g := newGuest(t)
	g.put(t, "dir/sub/file", "")
	g.put(t, "outside", "kept")
	require.NoError(t, os.Symlink("../outside", g.path("dir/link")))
	remove := func(p string) { require.NoError(t, g.Apply(execution.FileChange{Path: p, Delete: true}, nil), p) }
	remove("none")
	remove("none/at/all")
	remove("dir/")
	require.Equal(t, []string{"outside"}, g.names(t), "links are deleted, and not what they lead to")
	g.put(t, "d/a", "")
	g.put(t, "d/.b", "")
	g.put(t, "d/c/d", "")
	remove("d/*")
	require.Equal(t, []string{"d", "d/.b", "outside"}, g.names(t))
	g.put(t, "*", "a file of that name")
	remove("none/*")
	require.FileExists(t, g.path("*"))
}

func TestOwnersOfChanges(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root gives files away")
	}
	g := newGuest(t)
	for who, want := range map[string][2]uint32{"": {0, 0}, "ann": {1234, 1235}, "7": {7, 7}, "7:8": {7, 8}, "1234": {1234, 1235}} {
		require.NoError(t, g.Apply(execution.FileChange{Path: "f", Write: true, Owner: who}, strings.NewReader("")))
		require.NoError(t, g.Apply(execution.FileChange{Path: "d", Mkdir: true, Owner: who}, nil))
		for _, name := range []string{"f", "d"} {
			var st syscall.Stat_t
			require.NoError(t, syscall.Lstat(g.path(name), &st))
			require.Equal(t, want, [2]uint32{st.Uid, st.Gid}, "%s of %q", name, who)
		}
	}
}

func TestTimesOfFiles(t *testing.T) {
	t.Parallel()
	g := newGuest(t)
	g.put(t, "f", "")
	at := time.Unix(1_600_000_000, 5000)
	require.NoError(t, setTime(g.path("f"), at))
	require.NoError(t, setTime(g.path("f"), time.Time{}), "no time leaves it")
	info, err := os.Stat(g.path("f"))
	require.NoError(t, err)
	require.True(t, info.ModTime().Equal(at))
	require.NoError(t, os.Symlink("none", g.path("l")))
	require.NoError(t, setTime(g.path("l"), at), "a link has its own")
}
