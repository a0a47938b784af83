package files

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/node/supervisor/guest/account"
	"github.com/drover-project/drover/internal/node/supervisor/wire"
)

// guest is a service whose working directory is a folder of the test's.
type guest struct {
	*Files
	dir  string
	boot *wire.Boot
}

func newGuest(t testing.TB) *guest {
	t.Helper()
	accounts := t.TempDir()
	passwd, group := filepath.Join(accounts, "passwd"), filepath.Join(accounts, "group")
	require.NoError(t, os.WriteFile(passwd, []byte("root:x:0:0::/root:\nann:x:1234:1235::/home/ann:\n"), 0o600))
	require.NoError(t, os.WriteFile(group, []byte("root:x:0:\nstaff:x:1235:\n"), 0o600))
	g := &guest{dir: t.TempDir()}
	g.boot = &wire.Boot{WorkDir: g.dir}
	g.Files = New(account.Open(passwd, group), func() *wire.Boot { return g.boot })
	return g
}

func (g *guest) path(name string) string { return filepath.Join(g.dir, name) }

// put makes a file of the guest's, and the folders on the way.
func (g *guest) put(t testing.TB, name, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(g.path(name)), 0o755))
	require.NoError(t, os.WriteFile(g.path(name), []byte(text), 0o600))
}

func (g *guest) text(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile(g.path(name))
	require.NoError(t, err)
	return string(b)
}

// names lists everything below the guest's working directory.
func (g *guest) names(t testing.TB) (all []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(g.dir, func(p string, _ fs.DirEntry, err error) error {
		if p != g.dir {
			all = append(all, strings.TrimPrefix(p, g.dir+"/"))
		}
		return err
	}))
	return all
}

func (g *guest) write(name, text string) error {
	return g.Apply(execution.FileChange{Path: name, Write: true}, strings.NewReader(text))
}

func TestPathsOfRequests(t *testing.T) {
	t.Parallel()
	g := newGuest(t)
	for asked, want := range map[string]string{
		"":             g.dir,
		".":            g.dir,
		"a/b":          g.dir + "/a/b",
		"./a//b/":      g.dir + "/a/b",
		"../x":         filepath.Dir(g.dir) + "/x",
		"/etc/passwd":  "/etc/passwd",
		"/../../etc/":  "/etc",
		"/a/./b/../c":  "/a/c",
		"a b\n\"c\"":   g.dir + "/a b\n\"c\"",
		"\xff\xfe/ü":   g.dir + "/\xff\xfe/ü",
		"/" + "a/../a": "/a",
	} {
		got, err := g.absolute(asked)
		require.NoError(t, err, asked)
		require.Equal(t, want, got, asked)
	}
	_, err := g.absolute("a\x00b")
	require.Equal(t, drover.Invalid, drover.CodeOf(err))
	g.boot = &wire.Boot{}
	got, err := g.absolute("a")
	require.NoError(t, err)
	require.Equal(t, "/a", got, "without a working directory it is the root")
}

func TestWhatNamesADirectory(t *testing.T) {
	t.Parallel()
	for asked, is := range map[string]bool{"a/": true, "a/.": true, "/": true, "a": false, "a/b": false, "a.": false, "": false} {
		require.Equal(t, is, namesDirectory(asked), asked)
	}
	require.Equal(t, "/x/a/", asDirectory("a/", "/x/a"))
	require.Equal(t, "/x/a", asDirectory("a", "/x/a"))
}

func TestErrorsOfTheFileSystem(t *testing.T) {
	t.Parallel()
	for code, errs := range map[drover.Code][]error{
		drover.NotFound:  {syscall.ENOENT, fs.ErrNotExist, &fs.PathError{Op: "open", Path: "/host", Err: syscall.ENOENT}},
		drover.Forbidden: {syscall.EACCES, syscall.EPERM, syscall.EROFS},
		drover.Exhausted: {syscall.ENOSPC, syscall.EDQUOT},
		drover.Invalid: {
			syscall.ENOTDIR, syscall.EISDIR, syscall.ELOOP, syscall.ENAMETOOLONG, syscall.EINVAL, syscall.ENXIO, syscall.EEXIST,
			syscall.EBUSY, syscall.ENOTEMPTY,
		},
		drover.Internal: {syscall.EIO, io.ErrUnexpectedEOF},
	} {
		for _, err := range errs {
			got := fileError("a b", err)
			require.Equal(t, code, drover.CodeOf(got), "%v", err)
			require.ErrorContains(t, got, `"a b"`, "it names the path as it was asked for")
			require.NotContains(t, got.Error(), "/host", "and no other")
		}
	}
	require.NoError(t, fileError("x", nil))
	known := drover.Errorf(drover.TooLarge, "big")
	require.Equal(t, known, fileError("x", known), "what has a code keeps it")
}

// A writer that nobody reads any more ends the work.
type gone struct{ after int }

func (g *gone) Write(p []byte) (int, error) {
	if g.after -= len(p); g.after < 0 {
		return 0, io.ErrClosedPipe
	}
	return len(p), nil
}

func TestWorkEndsWithItsReader(t *testing.T) {
	t.Parallel()
	g := newGuest(t)
	g.put(t, "a/big", strings.Repeat("x", 1<<20))
	for i := range 700 {
		g.put(t, "many/"+strings.Repeat("n", 100)+string(rune('a'+i%26))+strings.Repeat("m", i%100)+"x", "")
	}
	read := g.Read(&gone{1000}, func(execution.FileInfo) {}, execution.FileRequest{Path: "a/big"})
	archive := g.Archive(&gone{1000}, execution.FileRequest{Path: "a"})
	list := g.List(&gone{}, execution.FileRequest{Recursive: true})
	for what, err := range map[string]error{"read": read, "archive": archive, "list": list} {
		require.True(t, errors.Is(err, io.ErrClosedPipe), "%s: %v", what, err)
	}
}
