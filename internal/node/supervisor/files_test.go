package supervisor

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
)

func paths(list []execution.FileInfo) (p []string) {
	for _, f := range list {
		p = append(p, f.Type+f.Path)
	}
	slices.Sort(p)
	return p
}

func TestFilesWithNastyNames(t *testing.T) {
	t.Parallel()
	c, state := launch(t, nil)
	dir := filepath.Dir(state)
	f := c.Files()
	names := []string{"new\nline", `quo"te'`, "-rf", "\xff\xfe", "a b", "foo:", ".hidden"}
	var changes []execution.FileChange
	for _, n := range names {
		changes = append(changes, execution.FileChange{Path: "d/" + n, Write: true, Data: []byte(n)})
	}
	require.NoError(t, f.Apply(t.Context(), changes))
	require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(dir, "d/link")))
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "d/pipe"), 0o600))
	list, err := f.List(t.Context(), execution.FileRequest{Path: "d"})
	require.NoError(t, err)
	want := []string{"llink", "ppipe"}
	for _, n := range names {
		want = append(want, "-"+n)
	}
	slices.Sort(want)
	require.Equal(t, want, paths(list))
	for _, i := range list {
		if i.Path == "link" {
			require.Equal(t, "/etc/passwd", i.LinkTarget)
		}
		if i.Path == "-rf" {
			require.Equal(t, uint32(0o744), i.Mode)
			require.Equal(t, int64(3), i.Size)
		}
	}
	for _, n := range names {
		info, r, err := f.Read(t.Context(), execution.FileRequest{Path: "d/" + n})
		require.NoError(t, err)
		b, err := io.ReadAll(r)
		require.NoError(t, err)
		require.NoError(t, r.Close())
		require.Equal(t, n, string(b))
		require.Equal(t, int64(len(n)), info.Size)
	}
	_, _, err = f.Read(t.Context(), execution.FileRequest{Path: "d/pipe"})
	require.Equal(t, drover.Invalid, drover.CodeOf(err))

	require.NoError(
		t,
		f.Apply(t.Context(), []execution.FileChange{{Path: "d/*", Delete: true}, {Path: "d/sub/", Mkdir: true}, {Path: "nothing", Delete: true}}),
	)
	list, err = f.List(t.Context(), execution.FileRequest{Path: ".", Recursive: true})
	require.NoError(t, err)
	got := slices.DeleteFunc(paths(list), func(p string) bool { return strings.Contains(p, "state") })
	require.Equal(t, []string{"-d/.hidden", "dd", "dd/sub"}, got)
}

func TestFileErrorsHaveCodes(t *testing.T) {
	t.Parallel()
	c, state := launch(t, nil)
	f := c.Files()
	_, err := f.List(t.Context(), execution.FileRequest{Path: "/no/such"})
	require.Equal(t, drover.NotFound, drover.CodeOf(err))
	require.ErrorContains(t, err, `no such file or directory: "/no/such"`)
	_, _, err = f.Read(t.Context(), execution.FileRequest{Path: filepath.Dir(state)})
	require.Equal(t, drover.Invalid, drover.CodeOf(err))
	require.Equal(t, drover.Invalid, drover.CodeOf(f.Apply(t.Context(), []execution.FileChange{{Path: "x"}})))
	require.Equal(
		t,
		drover.Invalid,
		drover.CodeOf(f.Apply(t.Context(), []execution.FileChange{{Path: "x", Write: true, Owner: "nobody-here"}})),
	)
	require.Equal(
		t,
		drover.Invalid,
		drover.CodeOf(f.Write(t.Context(), execution.FileChange{Path: "y/"}, bytes.NewReader(make([]byte, 5<<20)))),
	)
	_, err = f.Archive(t.Context(), execution.FileRequest{Path: "/no/such"})
	require.Equal(t, drover.NotFound, drover.CodeOf(err))
}

func TestAPathWithAFinalSlashIsADirectorys(t *testing.T) {
	t.Parallel()
	c, state := launch(t, nil)
	f := c.Files()
	dir := filepath.Dir(state)
	require.NoError(
		t,
		f.Apply(
			t.Context(),
			[]execution.FileChange{{Path: "a.bin", Write: true, Data: []byte("1")}, {Path: "d/b", Write: true, Data: []byte("2")}},
		),
	)
	require.NoError(t, os.Symlink("d", filepath.Join(dir, "link")))
	for _, p := range []string{"a.bin/", "a.bin//", "a.bin/.", filepath.Join(dir, "a.bin") + "/"} {
		r := execution.FileRequest{Path: p}
		_, _, read := f.Read(t.Context(), r)
		_, list := f.List(t.Context(), r)
		_, archive := f.Archive(t.Context(), r)
		for what, err := range map[string]error{
			"read": read, "list": list, "archive": archive, "extract": f.Extract(t.Context(), r, strings.NewReader("")),
			"write":  f.Write(t.Context(), execution.FileChange{Path: p}, strings.NewReader("3")),
			"mkdir":  f.Apply(t.Context(), []execution.FileChange{{Path: p, Mkdir: true}}),
			"delete": f.Apply(t.Context(), []execution.FileChange{{Path: p, Delete: true}}),
		} {
			require.Equal(t, drover.Invalid, drover.CodeOf(err), "%s %q: %v", what, p, err)
		}
	}
	require.Equal(t, drover.Invalid, drover.CodeOf(f.Apply(t.Context(), []execution.FileChange{{Path: "link/", Delete: true}})))
	list, err := f.List(t.Context(), execution.FileRequest{Path: "link/"})
	require.NoError(t, err)
	require.Equal(t, []string{"-b"}, paths(list))
	require.NoError(t, f.Apply(t.Context(), []execution.FileChange{{Path: "d/", Delete: true}, {Path: "none/", Delete: true}}))
	b, err := os.ReadFile(filepath.Join(dir, "a.bin"))
	require.NoError(t, err)
	require.Equal(t, "1", string(b))
}

func TestUnprivilegedFileWorkHasTheUsersRights(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		return // there is nobody else to be
	}
	c, state := launch(t, func(cfg *LaunchConfig) { cfg.User = User{UID: 65534, GID: 65534} })
	secret := filepath.Join(filepath.Dir(state), "secret")
	require.NoError(t, os.WriteFile(secret, []byte("s"), 0o600))
	require.NoError(t, os.Chmod(filepath.Dir(state), 0o755)) // on purpose
	require.NoError(t, os.Chmod(filepath.Dir(filepath.Dir(state)), 0o755))
	_, _, err := c.Files().Read(t.Context(), execution.FileRequest{Path: secret})
	require.Equal(t, drover.Forbidden, drover.CodeOf(err))
	_, err = c.Files().List(t.Context(), execution.FileRequest{Path: state})
	require.Equal(t, drover.Forbidden, drover.CodeOf(err))
	_, r, err := c.Files().Read(t.Context(), execution.FileRequest{Path: secret, Privileged: true})
	require.NoError(t, err)
	b, err := io.ReadAll(r)
	require.NoError(t, err)
	require.NoError(t, r.Close())
	require.Equal(t, "s", string(b))
	got := run(t, c, execution.Spec{Argv: []string{"id", "-u"}})
	require.Equal(t, "65534\n", string(got.stdout))
	got = run(t, c, execution.Spec{Argv: []string{"sh", "-c", "id -u; echo x >/dev/stderr"}})
	require.Equal(t, "x\n", string(got.stderr))
	got = run(t, c, execution.Spec{Argv: []string{"id", "-u"}, Privileged: true})
	require.Equal(t, "0\n", string(got.stdout))
	got = run(t, c, execution.Spec{Argv: []string{"sh", "-c", "id -u; id -g"}, User: "1234:55"})
	require.Equal(t, "1234\n55\n", string(got.stdout))
}

func TestLargeFilesGoBothWays(t *testing.T) {
	t.Parallel()
	c, _ := launch(t, nil)
	f := c.Files()
	data := make([]byte, 9<<20+3)
	for i := range data {
		data[i] = byte(i * 31)
	}
	require.NoError(
		t,
		f.Apply(t.Context(), []execution.FileChange{{Path: "a", Write: true, Data: data}, {Path: "b", Write: true, Data: data[:100]}}),
	)
	require.NoError(t, f.Write(t.Context(), execution.FileChange{Path: "c", Mode: 0o600}, bytes.NewReader(data)))
	for _, name := range []string{"a", "c"} {
		_, r, err := f.Read(t.Context(), execution.FileRequest{Path: name})
		require.NoError(t, err)
		b, err := io.ReadAll(r)
		require.NoError(t, err)
		require.NoError(t, r.Close())
		require.True(t, bytes.Equal(data, b))
	}
	_, r, err := f.Read(t.Context(), execution.FileRequest{Path: "a", Offset: 1 << 20, Length: 10})
	require.NoError(t, err)
	b, err := io.ReadAll(r)
	require.NoError(t, err)
	require.NoError(t, r.Close())
	require.Equal(t, data[1<<20:1<<20+10], b)
}

func TestArchiveAndExtract(t *testing.T) {
	t.Parallel()
	c, _ := launch(t, nil)
	f := c.Files()
	require.NoError(t, f.Apply(t.Context(), []execution.FileChange{
		{Path: "src/a", Write: true, Data: []byte("aa")}, {Path: "src/deep/b", Write: true, Data: []byte("bb")},
	}))
	ar, err := f.Archive(t.Context(), execution.FileRequest{Path: "src"})
	require.NoError(t, err)
	require.NoError(t, f.Extract(t.Context(), execution.FileRequest{Path: "dst"}, ar))
	require.NoError(t, ar.Close())
	list, err := f.List(t.Context(), execution.FileRequest{Path: "dst", Recursive: true})
	require.NoError(t, err)
	require.Equal(t, []string{"-a", "-deep/b", "ddeep"}, paths(list))

	var evil bytes.Buffer
	w := tar.NewWriter(&evil)
	require.NoError(t, w.WriteHeader(&tar.Header{Name: "../../up", Typeflag: tar.TypeReg, Size: 1, Mode: 0o644}))
	_, _ = w.Write([]byte("x"))
	require.NoError(t, w.Close())
	require.NoError(t, f.Extract(t.Context(), execution.FileRequest{Path: "dst"}, &evil))
	_, r, err := f.Read(t.Context(), execution.FileRequest{Path: "dst/up"})
	require.NoError(t, err)
	require.NoError(t, r.Close())
	require.Equal(t, drover.Invalid, drover.CodeOf(f.Extract(t.Context(), execution.FileRequest{Path: "dst"}, strings.NewReader("no tar"))))
}

// Folders get their modes and times last: they may not be written to, and what is made in them changes their times.
func TestExtractKeepsModesAndTimes(t *testing.T) {
	t.Parallel()
	c, state := launch(t, nil)
	dir := filepath.Dir(state)
	at := time.Unix(1_000_000_000, 0)
	var ar bytes.Buffer
	w := tar.NewWriter(&ar)
	for _, h := range []*tar.Header{
		{Name: "sealed/", Typeflag: tar.TypeDir, Mode: 0o555},
		{Name: "sealed/inner/", Typeflag: tar.TypeDir, Mode: 0o710},
		{Name: "sealed/inner/f", Typeflag: tar.TypeReg, Mode: 0o640},
		{Name: "sealed/link", Typeflag: tar.TypeSymlink, Linkname: "nowhere"},
		{Name: "was", Typeflag: tar.TypeDir, Mode: 0o700},
		{Name: "was", Typeflag: tar.TypeSymlink, Linkname: "/etc"},
	} {
		h.ModTime = at
		require.NoError(t, w.WriteHeader(h))
	}
	require.NoError(t, w.Close())
	f := c.Files()
	require.NoError(t, f.Extract(t.Context(), execution.FileRequest{Path: "dst"}, &ar))
	list, err := f.List(t.Context(), execution.FileRequest{Path: "dst", Recursive: true})
	require.NoError(t, err)
	modes := map[string]uint32{}
	for _, i := range list {
		require.WithinDuration(t, at, i.ModTime, 0, i.Path)
		if i.Type != "l" {
			modes[i.Path] = i.Mode
		}
	}
	require.Equal(t, map[string]uint32{"sealed": 0o555, "sealed/inner": 0o710, "sealed/inner/f": 0o640}, modes)
	require.NoError(t, os.Chmod(filepath.Join(dir, "dst/sealed"), 0o755)) // for the test's cleaning
}

// A file that is being uploaded is not there yet: neither in listings nor in archives, nor for the program.
func TestAnUploadIsNotSeenBeforeItsEnd(t *testing.T) {
	t.Parallel()
	c, state := launch(t, nil)
	f := c.Files()
	require.NoError(t, f.Apply(t.Context(), []execution.FileChange{{Path: "d", Mkdir: true}}))
	r, w := io.Pipe()
	written := make(chan error, 1)
	go func() { written <- f.Write(t.Context(), execution.FileChange{Path: "d/new"}, r) }() // ends with w
	for range 100 {
		_, err := w.Write(make([]byte, 64<<10)) // more than is under way: it is being written
		require.NoError(t, err)
	}
	list, err := f.List(t.Context(), execution.FileRequest{Path: "d"})
	require.NoError(t, err)
	require.Empty(t, list)
	ar, err := f.Archive(t.Context(), execution.FileRequest{Path: "d"})
	require.NoError(t, err)
	_, err = tar.NewReader(ar).Next()
	require.ErrorIs(t, err, io.EOF)
	require.NoError(t, ar.Close())
	require.NoError(t, w.Close())
	require.NoError(t, <-written)
	entries, err := os.ReadDir(filepath.Join(filepath.Dir(state), "d"))
	require.NoError(t, err)
	require.Len(t, entries, 1)
	require.Equal(t, "new", entries[0].Name())

	r, w = io.Pipe()
	go func() { written <- f.Write(t.Context(), execution.FileChange{Path: "d/new"}, r) }() // ends with w
	_, err = w.Write([]byte("x"))
	require.NoError(t, err)
	require.NoError(t, w.CloseWithError(io.ErrUnexpectedEOF))
	require.Error(t, <-written)
	entries, err = os.ReadDir(filepath.Join(filepath.Dir(state), "d"))
	require.NoError(t, err)
	require.Len(t, entries, 1)
}
