package files

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/node/supervisor/wire"
)

// list is what the agent makes of a listing.
func (g *guest) list(t testing.TB, req execution.FileRequest) (all []execution.FileInfo, err error) {
	t.Helper()
	var b bytes.Buffer
	err = g.List(&b, req)
	for d := (wire.Decoder{B: b.Bytes()}); len(d.B) > 0; {
		all = append(all, d.FileInfo())
		require.NoError(t, d.Err)
	}
	return all, err
}

func paths(all []execution.FileInfo) (names []string) {
	for _, f := range all {
		names = append(names, f.Path)
	}
	return names
}

func TestAListingDescribesEachKind(t *testing.T) {
	t.Parallel()
	g := newGuest(t)
	g.put(t, "file", "12345")
	at := time.Unix(1_700_000_000, 123_000_000)
	require.NoError(t, os.Chmod(g.path("file"), os.ModeSetuid|0o751))
	require.NoError(t, os.Chtimes(g.path("file"), at, at))
	require.NoError(t, os.Mkdir(g.path("dir"), 0o700))
	require.NoError(t, os.Symlink("../nowhere", g.path("link")))
	require.NoError(t, syscall.Mkfifo(g.path("pipe"), 0o600))
	socket, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	require.NoError(t, err)
	require.NoError(t, syscall.Bind(socket, &syscall.SockaddrUnix{Name: g.path("sock")}))
	require.NoError(t, syscall.Close(socket))
	all, err := g.list(t, execution.FileRequest{})
	require.NoError(t, err)
	require.Equal(t, []string{"dir", "file", "link", "pipe", "sock"}, paths(all), "sorted by name")
	var kinds string
	for _, f := range all {
		kinds += f.Type
	}
	require.Equal(t, "d-lps", kinds)
	file := all[1]
	require.Equal(t, int64(5), file.Size)
	require.Equal(t, uint32(0o4751), file.Mode)
	require.True(t, file.ModTime.Equal(at))
	require.Equal(t, "../nowhere", all[2].LinkTarget)
	require.Empty(t, file.LinkTarget)
}

func TestOwnersHaveTheGuestsNames(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root gives files away")
	}
	g := newGuest(t)
	for name, ids := range map[string][2]int{"known": {1234, 1235}, "other": {4321, 0}} {
		g.put(t, name, "")
		require.NoError(t, os.Chown(g.path(name), ids[0], ids[1]))
	}
	all, err := g.list(t, execution.FileRequest{})
	require.NoError(t, err)
	require.Equal(t, []string{"ann", "staff"}, []string{all[0].Owner, all[0].Group})
	require.Equal(t, []string{"4321", "root"}, []string{all[1].Owner, all[1].Group})
	require.Equal(t, []int{1234, 1235}, []int{all[0].UID, all[0].GID})
}

func TestARecursiveListingFollowsNoLinks(t *testing.T) {
	t.Parallel()
	g := newGuest(t)
	g.put(t, "a/b/c", "")
	g.put(t, "a.txt", "")
	require.NoError(t, os.Symlink("..", g.path("a/up")))
	require.NoError(t, os.Symlink("/etc", g.path("a/b/etc")))
	all, err := g.list(t, execution.FileRequest{Recursive: true})
	require.NoError(t, err)
	require.Equal(t, []string{"a", "a/b", "a/b/c", "a/b/etc", "a/up", "a.txt"}, paths(all))
	all, err = g.list(t, execution.FileRequest{})
	require.NoError(t, err)
	require.Equal(t, []string{"a", "a.txt"}, paths(all))
	all, err = g.list(t, execution.FileRequest{Path: "a/up"})
	require.NoError(t, err)
	require.Equal(t, []string{"a", "a.txt"}, paths(all), "a link that was asked for is followed")
}

func TestWhatIsNoDirectoryIsListedAsItself(t *testing.T) {
	t.Parallel()
	g := newGuest(t)
	g.put(t, "d/file", "123")
	all, err := g.list(t, execution.FileRequest{Path: "d/file"})
	require.NoError(t, err)
	require.Equal(t, []string{"file"}, paths(all))
	require.Equal(t, int64(3), all[0].Size)
	for path, code := range map[string]drover.Code{
		"d/file/": drover.Invalid, "d/none": drover.NotFound, "d/file/x": drover.Invalid, "x\x00": drover.Invalid,
		strings.Repeat("n", 300): drover.Invalid,
	} {
		_, err := g.list(t, execution.FileRequest{Path: path})
		require.Equal(t, code, drover.CodeOf(err), path)
	}
}

func TestAListingEndsInTheDeep(t *testing.T) {
	t.Parallel()
	g := newGuest(t)
	require.NoError(t, os.MkdirAll(g.path(strings.Repeat("d/", maxDepth+10)), 0o755))
	all, err := g.list(t, execution.FileRequest{Recursive: true})
	require.NoError(t, err)
	require.Len(t, all, maxDepth+1)
}

func TestFilesThatAreBeingWrittenAreNotListed(t *testing.T) {
	t.Parallel()
	g := newGuest(t)
	g.put(t, ".drover-notes", "the guest's own")
	d, err := g.openDraft(g.dir)
	require.NoError(t, err)
	require.NoError(t, d.nameIt())
	require.FileExists(t, d.name)
	all, err := g.list(t, execution.FileRequest{})
	require.NoError(t, err)
	require.Equal(t, []string{".drover-notes"}, paths(all))
	var tar bytes.Buffer
	require.NoError(t, g.Archive(&tar, execution.FileRequest{}))
	require.NotContains(t, tar.String(), filepath.Base(d.name))
	d.close(false)
	require.NoFileExists(t, d.name)
	g.put(t, filepath.Base(d.name), "")
	all, err = g.list(t, execution.FileRequest{})
	require.NoError(t, err)
	require.Len(t, all, 2, "the name is the guest's again")
}

// TestRightsOfTheGuestsUser: what the default user may not read is not listed, unless the request is privileged.
func TestTheLinksOfAProcessAreForItsUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root does file work as another user")
	}
	g := newGuest(t)
	g.boot = &wire.Boot{WorkDir: g.dir, UID: 1234, GID: 1235}
	target := func(p string, privileged bool) string {
		all, err := g.list(t, execution.FileRequest{Path: filepath.Dir(p) + "/", Privileged: privileged})
		require.NoError(t, err)
		i := slices.IndexFunc(all, func(f execution.FileInfo) bool { return f.Path == filepath.Base(p) })
		require.GreaterOrEqual(t, i, 0)
		require.Equal(t, "l", all[i].Type)
		return all[i].LinkTarget
	}
	for _, link := range []string{"cwd", "exe", "root"} {
		require.Empty(t, target("/proc/self/"+link, false), "the supervisor's %s is not the user's business", link)
		require.NotEmpty(t, target("/proc/self/"+link, true))
	}
	all, err := g.list(t, execution.FileRequest{Path: "/proc/self/fd/"})
	require.NoError(t, err)
	require.NotEmpty(t, all)
	for _, f := range all {
		require.Empty(t, f.LinkTarget, "descriptor %s", f.Path)
	}
	require.Empty(t, target("/proc/1/cwd", false), "nor that of another process of root")
	var tar bytes.Buffer
	require.NoError(t, g.Archive(&tar, execution.FileRequest{Path: "/proc/self/fd/"}))
	require.Equal(t, strings.Repeat("\x00", 1024), tar.String(), "an archive has no links without a target")

	theirs := exec.Command("cat")
	theirs.Dir = "/"
	theirs.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 1234, Gid: 1235}}
	in, err := theirs.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, theirs.Start())
	t.Cleanup(func() {
		_ = in.Close()
		_ = theirs.Wait()
	})
	require.Equal(t, "/", target("/proc/"+strconv.Itoa(theirs.Process.Pid)+"/cwd", false), "a process of their own")

	require.Equal(t, strconv.Itoa(os.Getpid()), target("/proc/self", false), "what everybody may know")
	require.NoError(t, os.Symlink("/proc/1/cwd", g.path("link")))
	for d := g.dir; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
		require.NoError(t, os.Chmod(d, 0o755))
	}
	require.Equal(t, "/proc/1/cwd", target(g.path("link"), false), "the text of a link outside /proc")
}

func TestRightsOfTheGuestsUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root acts as others")
	}
	g := newGuest(t)
	g.boot = &wire.Boot{WorkDir: g.dir, UID: 1234, GID: 1235}
	for d := g.dir; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
		require.NoError(t, os.Chmod(d, 0o755))
	}
	g.put(t, "closed/secret", "s")
	require.NoError(t, os.Chmod(g.path("closed"), 0o700))
	g.put(t, "open/file", "s") // of root, 0600
	all, err := g.list(t, execution.FileRequest{Recursive: true})
	require.NoError(t, err)
	require.Equal(t, []string{"closed", "open", "open/file"}, paths(all), "below the first what cannot be read is left out")
	_, err = g.list(t, execution.FileRequest{Path: "closed"})
	require.Equal(t, drover.Forbidden, drover.CodeOf(err))
	all, err = g.list(t, execution.FileRequest{Path: "closed", Privileged: true})
	require.NoError(t, err)
	require.Equal(t, []string{"secret"}, paths(all))
	_, err = g.read(execution.FileRequest{Path: "open/file"})
	require.Equal(t, drover.Forbidden, drover.CodeOf(err))
	got, err := g.read(execution.FileRequest{Path: "open/file", Privileged: true})
	require.NoError(t, err)
	require.Equal(t, "s", got)
	var tar bytes.Buffer
	require.NoError(t, g.Archive(&tar, execution.FileRequest{}))
	require.Contains(t, tar.String(), "closed/")
	require.NotContains(t, tar.String(), "secret")
	require.NotContains(t, tar.String(), "open/file", "it cannot be read")
}
