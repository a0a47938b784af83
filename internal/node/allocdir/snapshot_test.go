package allocdir

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// made is an allocation's folder with those of a task "t", and what is in it.
func made(t *testing.T, id string) Dir {
	t.Helper()
	root := NewRoot(t.TempDir())
	require.NoError(t, root.Prepare())
	d, err := root.Dir(id)
	require.NoError(t, err)
	require.NoError(t, d.Build())
	require.NoError(t, d.BuildTask("t"))
	t.Cleanup(func() { _ = d.Remove("t") })
	return d
}

const (
	one = "11111111-2222-4333-8444-555555555555"
	two = "21111111-2222-4333-8444-555555555555"
)

// list says what is below the folders that are taken over.
func list(t *testing.T, d Dir) (out []string) {
	for _, part := range carried([]string{"t"}) {
		err := filepath.WalkDir(filepath.Join(d.Path(), part), func(path string, e fs.DirEntry, err error) error {
			require.NoError(t, err)
			info, err := e.Info()
			require.NoError(t, err)
			rel, _ := filepath.Rel(d.Path(), path)
			line := fmt.Sprintf("%s %v", rel, info.Mode())
			switch {
			case info.Mode().IsRegular():
				data, err := os.ReadFile(path)
				require.NoError(t, err)
				line += " " + string(data)
			case info.Mode()&fs.ModeSymlink != 0:
				target, err := os.Readlink(path)
				require.NoError(t, err)
				line += " -> " + target
			}
			out = append(out, line)
			return nil
		})
		require.NoError(t, err)
	}
	return out
}

func TestASnapshotIsAdoptedWhole(t *testing.T) {
	t.Parallel()
	from, to := made(t, one), made(t, two)
	data, local := filepath.Join(from.Path(), "alloc", "data"), filepath.Join(from.Path(), "t", "local")
	require.NoError(t, os.MkdirAll(filepath.Join(data, "deep", "er"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(data, "deep", "er", "rows"), []byte("row"), 0o640))
	require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(data, "out")))
	require.NoError(t, os.Symlink("deep", filepath.Join(data, "in")))
	require.NoError(t, os.WriteFile(filepath.Join(local, "tool"), []byte("#!"), 0o755))
	require.NoError(t, os.Chmod(filepath.Join(local, "tool"), 0o755|fs.ModeSetuid))
	require.NoError(t, os.Mkdir(filepath.Join(local, "closed"), 0o500))
	require.NoError(t, syscall.Mkfifo(filepath.Join(local, "pipe"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(from.Path(), "t", "tmp", "no"), nil, 0o600))
	var b bytes.Buffer
	require.NoError(t, from.Snapshot(t.Context(), &b, []string{"t", "none"}))
	require.ErrorContains(t, to.Adopt(bytes.NewReader(b.Bytes()), []string{"t"}, 4), "more than the group's ephemeral_disk has room for")
	require.ErrorContains(t, to.Adopt(bytes.NewReader(b.Bytes()[:b.Len()/2]), []string{"t"}, 100), "EOF")
	require.Len(t, list(t, to), 2, "there is nothing of it")
	require.NoError(t, to.Adopt(bytes.NewReader(b.Bytes()), []string{"t"}, 100))
	want := strings.Split(strings.NewReplacer("urwxr", "-rwxr").Replace(strings.Join(list(t, from), "\n")), "\n")
	for i, line := range want {
		if strings.HasPrefix(line, "t/local/pipe") {
			want = append(want[:i:i], want[i+1:]...)
			break
		}
	}
	require.Equal(t, want, list(t, to))
	require.NoDirExists(t, filepath.Join(to.Path(), ".migrating"))
}

// A task may leave a link in the place of a folder that is taken over.
func TestASnapshotReadsNoLinkedFolder(t *testing.T) {
	t.Parallel()
	from := made(t, one)
	data := filepath.Join(from.Path(), "alloc", "data")
	require.NoError(t, os.Remove(data))
	require.NoError(t, os.Symlink("/etc", data))
	var b bytes.Buffer
	require.NoError(t, from.Snapshot(t.Context(), &b, []string{"t"}))
	r := tar.NewReader(&b)
	h, err := r.Next()
	require.NoError(t, err)
	require.Equal(t, "t/local", h.Name)
	_, err = r.Next()
	require.ErrorIs(t, err, io.EOF)
}

// What a node sends that is not honest stays in the folders that are taken over, or is refused whole.
func TestHostileSnapshots(t *testing.T) {
	t.Parallel()
	file := func(name string) tar.Header {
		return tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o600, Size: 1}
	}
	link := func(name, target string) tar.Header {
		return tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: target}
	}
	const no = "is no file, folder or symbolic link"
	for name, c := range map[string]struct {
		headers []tar.Header
		want    string
	}{
		"absolute":           {[]tar.Header{file("/etc/x")}, "is not in what is taken over"},
		"traversal":          {[]tar.Header{file("alloc/data/../../../x")}, "is not in what is taken over"},
		"another part":       {[]tar.Header{file("t/secrets/token")}, "is not in what is taken over"},
		"another task":       {[]tar.Header{file("u/local/x")}, "is not in what is taken over"},
		"the folder":         {[]tar.Header{file("alloc/data")}, `"alloc/data"`},
		"through a link out": {[]tar.Header{link("alloc/data/l", "../../t/secrets"), file("alloc/data/l/x")}, "escapes"},
		"through a root":     {[]tar.Header{link("alloc/data/l", "/tmp"), file("alloc/data/l/x")}, "escapes"},
		"onto a link":        {[]tar.Header{link("alloc/data/l", "x"), file("alloc/data/l")}, "exists"},
		"twice":              {[]tar.Header{file("alloc/data/x"), file("alloc/data/x")}, "exists"},
		"a hard link":        {[]tar.Header{{Name: "alloc/data/h", Typeflag: tar.TypeLink, Linkname: "/etc/passwd"}}, no},
		"a device":           {[]tar.Header{{Name: "alloc/data/d", Typeflag: tar.TypeBlock, Devmajor: 8}}, no},
		"a pipe":             {[]tar.Header{{Name: "alloc/data/p", Typeflag: tar.TypeFifo}}, no},
		"a long name":        {[]tar.Header{file("alloc/data/" + strings.Repeat("a/", 3000) + "x")}, "more than 4096 bytes"},
		"a long target":      {[]tar.Header{link("alloc/data/l", strings.Repeat("a", 5000))}, "more than 4096 bytes"},
		"too much":           {[]tar.Header{file("alloc/data/a"), file("alloc/data/b"), file("alloc/data/c")}, "has room for"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var b bytes.Buffer
			w := tar.NewWriter(&b)
			for _, h := range c.headers {
				require.NoError(t, w.WriteHeader(&h))
				if h.Size > 0 {
					_, err := w.Write([]byte("x"))
					require.NoError(t, err)
				}
			}
			require.NoError(t, w.Close())
			d := made(t, one)
			require.ErrorContains(t, d.Adopt(&b, []string{"t"}, 2), c.want)
			require.Len(t, list(t, d), 2, "there is nothing of it")
			require.NoDirExists(t, filepath.Join(d.Path(), ".migrating"))
		})
	}
	d := made(t, one)
	require.ErrorContains(t, d.Adopt(strings.NewReader("garbage"), []string{"t"}, 2), "reading the snapshot")
}

// Paths of folders are held in memory: a node that is not honest cannot have them fill it.
func TestTheFoldersOfASnapshotAreBounded(t *testing.T) {
	t.Parallel()
	root, err := os.OpenRoot(t.TempDir())
	require.NoError(t, err)
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range []string{"alloc/data/12345", "alloc/data/6"} {
		require.NoError(t, w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeDir, Mode: 0o700}))
	}
	require.NoError(t, w.Close())
	a := adoption{names: mostFolders - 5, parts: map[string]*os.Root{"alloc/data": root}}
	defer a.close()
	require.ErrorContains(t, a.read(tar.NewReader(&b)), `"alloc/data/6": the paths of the folders have more than 67108864 bytes together`)
}
