package files

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
)

// entry of a hostile or harmless archive.
type entry struct {
	kind       byte
	name, link string
	text       string
	mode       int64
}

func tarOf(t testing.TB, entries ...entry) *bytes.Buffer {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := &tar.Header{
			Typeflag: e.kind, Name: e.name, Linkname: e.link, Size: int64(len(e.text)), Mode: e.mode,
			ModTime: time.Unix(1_500_000_000, 0), Format: tar.FormatPAX,
		}
		require.NoError(t, w.WriteHeader(h))
		_, err := io.WriteString(w, e.text)
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return &b
}

// TestTreesComeBackAsTheyWere: what is archived and extracted again is the same tree.
func TestTreesComeBackAsTheyWere(t *testing.T) {
	t.Parallel()
	n := 0
	top := newGuest(t)
	rapid.Check(t, func(rt *rapid.T) {
		n++
		from, to := fmt.Sprintf("from%d", n), fmt.Sprintf("to%d", n)
		require.NoError(rt, os.Mkdir(top.path(from), 0o755))
		dirs := []string{from}
		for i := range rapid.IntRange(0, 12).Draw(rt, "entries") {
			name := rapid.SampledFrom([]string{"a", "b b", "ü", ".c"}).Draw(rt, "name") + fmt.Sprint(i)
			p := top.path(rapid.SampledFrom(dirs).Draw(rt, "in") + "/" + name)
			switch rapid.IntRange(0, 3).Draw(rt, "kind") {
			case 0:
				require.NoError(rt, os.Mkdir(p, 0o755))
				dirs = append(dirs, strings.TrimPrefix(p, top.dir+"/"))
			case 1:
				require.NoError(rt, os.Symlink(rapid.StringMatching(`[a-z./]{1,20}`).Draw(rt, "target"), p))
			default:
				text := rapid.SliceOfN(rapid.Byte(), 0, 3000).Draw(rt, "text")
				require.NoError(rt, os.WriteFile(p, text, 0o600))
				require.NoError(rt, os.Chmod(p, os.FileMode(rapid.Uint32Range(0o400, 0o777).Draw(rt, "mode"))))
			}
		}
		for _, d := range dirs[1:] {
			at := time.Unix(rapid.Int64Range(0, 2_000_000_000).Draw(rt, "time"), 0)
			require.NoError(rt, os.Chtimes(top.path(d), at, at))
		}
		var b bytes.Buffer
		require.NoError(rt, top.Archive(&b, execution.FileRequest{Path: from, Privileged: true}))
		require.NoError(rt, top.Extract(&b, execution.FileRequest{Path: to, Privileged: true}))
		want, err := top.list(t, execution.FileRequest{Path: from, Recursive: true, Privileged: true})
		require.NoError(rt, err)
		got, err := top.list(t, execution.FileRequest{Path: to, Recursive: true, Privileged: true})
		require.NoError(rt, err)
		require.Len(rt, got, len(want))
		for i := range want {
			want[i].ModTime = want[i].ModTime.Truncate(time.Second)
			require.Equal(rt, want[i], got[i])
			if want[i].Type == "-" {
				require.Equal(rt, top.text(t, from+"/"+want[i].Path), top.text(t, to+"/"+want[i].Path))
			}
		}
	})
}

func TestOnlyFilesFoldersAndLinksAreArchived(t *testing.T) {
	t.Parallel()
	g := newGuest(t)
	g.put(t, "d/file", "x")
	require.NoError(t, syscall.Mkfifo(g.path("d/pipe"), 0o600))
	require.NoError(t, os.Symlink("file", g.path("d/link")))
	var b bytes.Buffer
	require.NoError(t, g.Archive(&b, execution.FileRequest{Path: "d"}))
	var names []string
	for r := tar.NewReader(&b); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		names = append(names, h.Name)
	}
	require.Equal(t, []string{"file", "link"}, names)
	for path, code := range map[string]drover.Code{"none": drover.NotFound, "d/file": drover.Invalid, "d\x00": drover.Invalid} {
		require.Equal(t, code, drover.CodeOf(g.Archive(&bytes.Buffer{}, execution.FileRequest{Path: path})), path)
	}
}

// TestNamesOfAnArchiveDoNotLeadOut of the folder that it is extracted into.
func TestNamesOfAnArchiveDoNotLeadOut(t *testing.T) {
	t.Parallel()
	g := newGuest(t)
	g.put(t, "secret", "kept")
	archive := tarOf(t,
		entry{tar.TypeReg, "../secret", "", "overwritten", 0o600},
		entry{tar.TypeReg, "/absolute", "", "1", 0o600},
		entry{tar.TypeReg, "a/../../../b", "", "2", 0o600},
		entry{tar.TypeDir, "../../c/", "", "", 0o755},
		entry{tar.TypeLink, "hard", "../../secret", "", 0},
		entry{tar.TypeReg, "..", "", "", 0o600},
		entry{tar.TypeReg, ".", "", "", 0o600},
	)
	require.NoError(t, g.Extract(archive, execution.FileRequest{Path: "in/here"}))
	require.Equal(t, "kept", g.text(t, "secret"))
	require.Equal(t, []string{
		"in", "in/here", "in/here/absolute", "in/here/b", "in/here/c", "in/here/hard", "in/here/secret", "secret",
	}, g.names(t))
	require.Equal(t, "overwritten", g.text(t, "in/here/hard"), "a hard link's name is one of the archive")
}

func TestHardLinksToWhatIsNotInTheArchive(t *testing.T) {
	t.Parallel()
	g := newGuest(t)
	err := g.Extract(tarOf(t, entry{tar.TypeLink, "l", "/etc/passwd", "", 0}), execution.FileRequest{Path: "in"})
	require.Equal(t, drover.NotFound, drover.CodeOf(err))
	require.ErrorContains(t, err, `"l"`)
	require.Equal(t, []string{"in"}, g.names(t))
}

// TestAnArchiveReplacesLinks, and does not write through them.
func TestAnArchiveReplacesLinks(t *testing.T) {
	t.Parallel()
	g := newGuest(t)
	g.put(t, "outside", "kept")
	archive := tarOf(t,
		entry{tar.TypeSymlink, "l", "../outside", "", 0}, entry{tar.TypeReg, "l", "", "mine", 0o600},
		entry{tar.TypeReg, "f", "", "first", 0o600}, entry{tar.TypeSymlink, "f", "l", "", 0},
	)
	require.NoError(t, g.Extract(archive, execution.FileRequest{Path: "in"}))
	require.Equal(t, "kept", g.text(t, "outside"))
	require.Equal(t, "mine", g.text(t, "in/l"))
	target, err := os.Readlink(g.path("in/f"))
	require.NoError(t, err)
	require.Equal(t, "l", target)
}

func TestDevicesOfAnArchiveAreLeftOut(t *testing.T) {
	t.Parallel()
	g := newGuest(t)
	archive := tarOf(t, entry{tar.TypeChar, "null", "", "", 0o666}, entry{tar.TypeBlock, "disk", "", "", 0o666},
		entry{tar.TypeFifo, "pipe", "", "", 0o666}, entry{tar.TypeReg, "f", "", "x", 0o640})
	require.NoError(t, g.Extract(archive, execution.FileRequest{Path: "in"}))
	require.Equal(t, []string{"in", "in/f"}, g.names(t))
	require.Equal(t, uint32(0o640), g.mode(t, "in/f"))
}

// TestFoldersThatMayNotBeWritten are filled first, and get their modes and times at last.
func TestFoldersThatMayNotBeWritten(t *testing.T) {
	t.Parallel()
	g := newGuest(t)
	archive := tarOf(t, entry{tar.TypeDir, "d/", "", "", 0o555}, entry{tar.TypeReg, "d/f", "", "x", 0o444},
		entry{tar.TypeDir, "was/", "", "", 0o700})
	require.NoError(t, g.Extract(archive, execution.FileRequest{Path: "in"}))
	require.Equal(t, uint32(0o555), g.mode(t, "in/d"))
	require.Equal(t, uint32(0o444), g.mode(t, "in/d/f"))
	for _, name := range []string{"in/d", "in/d/f", "in/was"} {
		info, err := os.Stat(g.path(name))
		require.NoError(t, err)
		require.Equal(t, int64(1_500_000_000), info.ModTime().Unix(), name)
	}
}

func TestBrokenArchives(t *testing.T) {
	t.Parallel()
	whole := tarOf(t, entry{tar.TypeReg, "a", "", "first", 0o600}, entry{tar.TypeReg, "b", "", strings.Repeat("x", 5000), 0o600}).Bytes()
	for what, b := range map[string][]byte{
		"no archive":        []byte(strings.Repeat("nonsense ", 200)),
		"cut in the head":   whole[:200],
		"cut in a file":     whole[:1024+512+1000],
		"a head that lies":  append(append([]byte{}, whole[:100]...), append([]byte("9999999"), whole[107:]...)...),
		"cut in the second": whole[:1024+100],
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			g := newGuest(t)
			g.put(t, "in/b", "old")
			err := g.Extract(bytes.NewReader(b), execution.FileRequest{Path: "in"})
			require.Error(t, err)
			require.Equal(t, "old", g.text(t, "in/b"), "a file is whole, or as it was")
			for _, name := range g.names(t) {
				require.Contains(t, []string{"in", "in/a", "in/b"}, name, "nothing half is left")
			}
		})
	}
	g := newGuest(t)
	require.NoError(t, g.Extract(&bytes.Buffer{}, execution.FileRequest{Path: "in"}), "an empty archive makes the folder")
	require.Equal(t, []string{"in"}, g.names(t))
	g.put(t, "file", "")
	err := g.Extract(bytes.NewReader(whole), execution.FileRequest{Path: "file"})
	require.Equal(t, drover.Invalid, drover.CodeOf(err))
}
