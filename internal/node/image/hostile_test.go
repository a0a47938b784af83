package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
)

func unpackAll(t *testing.T, entries ...entry) string {
	t.Helper()
	dir, err := tryUnpack(t, entries...)
	require.NoError(t, err)
	return dir
}

func isOpaque(t *testing.T, dir string) bool {
	t.Helper()
	value := make([]byte, 4)
	n, err := syscall.Getxattr(dir, "user.overlay.opaque", value)
	return err == nil && string(value[:n]) == "y"
}

// TestDeletionsAreOfLowerLayers: what a layer deletes and has itself is not deleted, in whatever order they come.
func TestDeletionsAreOfLowerLayers(t *testing.T) {
	t.Parallel()
	const kind = tar.TypeDir
	for _, entries := range [][]entry{
		{{name: "d/", kind: kind}, {name: "d/x", text: "x"}, {name: ".wh.d"}},
		{{name: ".wh.d"}, {name: "d/", kind: kind}, {name: "d/x", text: "x"}},
		{{name: ".wh.d"}, {name: "d/x", text: "x"}},
	} {
		dir := unpackAll(t, entries...)
		require.True(t, isOpaque(t, filepath.Join(dir, "d")))
		require.FileExists(t, filepath.Join(dir, "d/x"))
	}
	for _, entries := range [][]entry{
		{{name: "f", text: "x"}, {name: ".wh.f"}},
		{{name: ".wh.f"}, {name: "f", text: "x"}},
	} {
		data, err := os.ReadFile(filepath.Join(unpackAll(t, entries...), "f"))
		require.NoError(t, err)
		require.Equal(t, "x", string(data))
	}
}

func TestTheLastEntryOfANameCounts(t *testing.T) {
	t.Parallel()
	dir := unpackAll(t,
		entry{name: "d/", kind: tar.TypeDir, mode: 0o700}, entry{name: "d/", kind: tar.TypeDir, mode: 0o750},
		entry{name: "f", text: "one"}, entry{name: "f", text: "two"},
		entry{name: "was/", kind: tar.TypeDir, mode: 0o700}, entry{name: "was", text: "a file", mode: 0o644},
		entry{name: "line\nbreak", text: "x"}, entry{name: "-rf", text: "x"})
	for name, mode := range map[string]os.FileMode{"d": os.ModeDir | 0o750, "f": 0o755, "was": 0o644, "line\nbreak": 0o755, "-rf": 0o755} {
		info, err := os.Stat(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode(), name)
	}
	data, err := os.ReadFile(filepath.Join(dir, "f"))
	require.NoError(t, err)
	require.Equal(t, "two", string(data))
}

func TestALinkToWhatIsLeftOutIsLeftOut(t *testing.T) {
	t.Parallel()
	dir := unpackAll(
		t, entry{name: "dev/null", kind: tar.TypeChar}, entry{name: "dev/zip", link: "dev/null", kind: tar.TypeLink},
		entry{name: "after", text: "x"},
	)
	require.NoFileExists(t, filepath.Join(dir, "dev/zip"))
	require.FileExists(t, filepath.Join(dir, "after"))
	_, err := tryUnpack(t, entry{name: "l", link: "no/such", kind: tar.TypeLink})
	require.ErrorContains(t, err, `linking to "no/such"`)
}

func TestNamesAreBounded(t *testing.T) {
	t.Parallel()
	for want, name := range map[string]string{
		"file name too long":  strings.Repeat("n", 300),
		"too many folders":    strings.Repeat("d/", 1000) + "x",
		"longer than 4096":    strings.Repeat("long/", 100_000) + "x",
		"through too many fo": "a/x", // a loop of links
	} {
		_, err := tryUnpack(
			t, entry{name: "a", link: "b", kind: tar.TypeSymlink}, entry{name: "b", link: "a", kind: tar.TypeSymlink}, entry{name: name, text: "x"},
		)
		require.ErrorContains(t, err, want)
	}
}

// sparse is an old GNU header of a file that says it is a terabyte.
func sparse() []byte {
	b := make([]byte, 512+1024)
	copy(b, "huge")
	copy(b[100:], "0000644\x000000000\x000000000\x00")
	copy(b[124:], "00000000000\x0000000000000\x00")
	b[156] = 'S'
	copy(b[257:], "ustar  \x00")
	copy(b[483:], "\x80\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00") // the real size, in binary
	copy(b[148:], "        ")
	sum := 0
	for _, c := range b[:512] {
		sum += int(c)
	}
	copy(b[148:], fmt.Sprintf("%06o\x00 ", sum))
	return b
}

func TestSparseFilesAreBounded(t *testing.T) {
	t.Parallel()
	err := unpack(bytes.NewReader(sparse()), t.TempDir(), unpackOptions{limits: Limits{Bytes: 1000, Files: 20}})
	require.Equal(t, drover.TooLarge, drover.CodeOf(err), "%v", err)
}

// TestBombs: neither the size that an archive unpacks to, nor what it only makes us read, is without bounds.
func TestBombs(t *testing.T) {
	t.Parallel()
	zeros := func(n int64) []byte { // after the archive's end
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, err := z.Write(archive(t, entry{name: "a", text: "x"}))
		require.NoError(t, err)
		_, err = io.CopyN(z, zero{}, n)
		require.NoError(t, err)
		require.NoError(t, z.Close())
		return b.Bytes()
	}
	window := []byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x98, 0x01, 0x00, 0x00} // 512 MB of memory, for an empty block
	for want, data := range map[string][]byte{"larger than an image may be": zeros(16 << 20), "window size exceeded": window} {
		plain, end, err := decompress(bytes.NewReader(data))
		require.NoError(t, err)
		err = unpack(
			io.LimitReader(&bounded{plain, Limits{Bytes: 1000, Files: 20}.stream()}, 1<<30), t.TempDir(),
			unpackOptions{limits: Limits{Bytes: 1000, Files: 20}},
		)
		if err == nil {
			_, err = io.Copy(io.Discard, &bounded{plain, Limits{Bytes: 1000, Files: 20}.stream()})
		}
		require.ErrorContains(t, err, want)
		end()
	}
}

type zero struct{}

func (zero) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// TestLayoutsLeadNowhere: links and what is no file, in a layout or an archive of one.
func TestLayoutsLeadNowhere(t *testing.T) {
	t.Parallel()
	for name, plant := range map[string]func(t *testing.T, index string){
		"device": func(t *testing.T, index string) { t.Helper(); require.NoError(t, os.Symlink("/dev/zero", index)) },
		"secret": func(t *testing.T, index string) { t.Helper(); require.NoError(t, os.Symlink("/etc/passwd", index)) },
		"pipe":   func(t *testing.T, index string) { t.Helper(); require.NoError(t, syscall.Mkfifo(index, 0o600)) },
		"folder": func(t *testing.T, index string) { t.Helper(); require.NoError(t, os.Mkdir(index, 0o700)) },
		"large": func(t *testing.T, index string) {
			t.Helper()
			require.NoError(t, os.WriteFile(index, nil, 0o600))
			require.NoError(t, os.Truncate(index, 1<<40))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path, err := layout.Write(dir, empty.Index)
			require.NoError(t, err)
			require.NoError(t, path.AppendImage(testImage(t, layers(t)...)))
			index := filepath.Join(dir, "index.json")
			require.NoError(t, os.Remove(index))
			plant(t, index)
			_, err = newStore(t).Prepare(t.Context(), Request{Ref: dir})
			require.Error(t, err)
			require.Contains(t, []drover.Code{drover.Invalid, drover.TooLarge}, drover.CodeOf(err), "%v", err)
			require.NotContains(t, err.Error(), "root:")
		})
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "links.tar")
	require.NoError(
		t,
		os.WriteFile(
			file,
			archive(t, entry{name: "index.json", link: "/etc/passwd", kind: tar.TypeSymlink}, entry{name: "a", link: "a", kind: tar.TypeSymlink}),
			0o600,
		),
	)
	_, err := newStore(t).Prepare(t.Context(), Request{Ref: file})
	require.Equal(t, drover.Invalid, drover.CodeOf(err), "%v", err)
	require.NoError(t, os.WriteFile(file, archive(t, entry{name: "manifest.json", link: "manifest.json", kind: tar.TypeSymlink}), 0o600))
	_, err = newStore(t).Prepare(t.Context(), Request{Ref: file})
	require.Equal(t, drover.Invalid, drover.CodeOf(err), "%v", err)
	require.NoError(t, os.WriteFile(file, archive(t, entry{name: "manifest.json", text: "[{},{}]"}), 0o600))
	_, err = newStore(t).Prepare(t.Context(), Request{Ref: file})
	require.ErrorContains(t, err, "2 images")
}
