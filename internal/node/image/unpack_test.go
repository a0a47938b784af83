package image

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover"
)

func tryUnpack(t *testing.T, entries ...entry) (dir string, err error) {
	t.Helper()
	outer := t.TempDir()
	dir = filepath.Join(outer, "root")
	require.NoError(t, os.Mkdir(dir, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(outer, "victim"), []byte("safe"), 0o600))
	err = unpack(bytes.NewReader(archive(t, entries...)), dir, unpackOptions{limits: Limits{Bytes: 1000, Files: 20}})
	data, readErr := os.ReadFile(filepath.Join(outer, "victim"))
	require.NoError(t, readErr)
	require.Equal(t, "safe", string(data), "something outside was written")
	left, readErr := os.ReadDir(outer)
	require.NoError(t, readErr)
	require.Len(t, left, 2, "something outside was made")
	return dir, err
}

func TestNothingLeadsOut(t *testing.T) {
	t.Parallel()
	for name, entries := range map[string][]entry{
		"dots":          {{name: "../victim", text: "bad"}, {name: "a/../../victim", text: "bad"}},
		"absolute":      {{name: "/victim", text: "in"}},
		"link up":       {{name: "l", link: "..", kind: tar.TypeSymlink}, {name: "l/victim", text: "bad"}},
		"link absolute": {{name: "l", link: "/", kind: tar.TypeSymlink}, {name: "l/victim", text: "in"}},
		"link chain": {{name: "a", link: "b", kind: tar.TypeSymlink}, {
			name: "b", link: "../..", kind: tar.TypeSymlink,
		}, {name: "a/victim", text: "bad"}},
		"link target":     {{name: "v", link: "../victim", kind: tar.TypeSymlink}, {name: "v", text: "bad"}},
		"whiteout up":     {{name: "../.wh.victim"}, {name: "l", link: "..", kind: tar.TypeSymlink}, {name: "l/.wh.victim"}},
		"whiteout opaque": {{name: "l", link: "..", kind: tar.TypeSymlink}, {name: "l/.wh..wh..opq"}},
		"directory":       {{name: "l", link: "../..", kind: tar.TypeSymlink}, {name: "l/", kind: tar.TypeDir, mode: 0o777}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := tryUnpack(t, entries...)
			require.NoError(t, err)
		})
	}
	for name, entries := range map[string][]entry{
		"hard link up":           {{name: "h", link: "../victim", kind: tar.TypeLink}},
		"hard link through link": {{name: "l", link: "..", kind: tar.TypeSymlink}, {name: "h", link: "l/victim", kind: tar.TypeLink}},
		"loop": {{
			name: "a", link: "b", kind: tar.TypeSymlink,
		}, {name: "b", link: "a", kind: tar.TypeSymlink}, {name: "a/x", text: "x"}},
		"empty whiteout": {{name: "d/.wh.."}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := tryUnpack(t, entries...)
			require.Error(t, err)
		})
	}
}

func TestDevicesAreLeftOut(t *testing.T) {
	t.Parallel()
	dir, err := tryUnpack(
		t, entry{name: "dev/sda", kind: tar.TypeBlock}, entry{name: "dev/mem", kind: tar.TypeChar}, entry{name: "p", kind: tar.TypeFifo},
	)
	require.NoError(t, err)
	require.NoFileExists(t, filepath.Join(dir, "dev/sda"))
	require.NoFileExists(t, filepath.Join(dir, "dev/mem"))
}

func TestSizesAreBounded(t *testing.T) {
	t.Parallel()
	_, err := tryUnpack(t, entry{name: "a", text: string(make([]byte, 600))}, entry{name: "b", text: string(make([]byte, 600))})
	require.Equal(t, drover.TooLarge, drover.CodeOf(err))
	many := make([]entry, 21)
	for i := range many {
		many[i].name = string(rune('a' + i))
	}
	_, err = tryUnpack(t, many...)
	require.Equal(t, drover.TooLarge, drover.CodeOf(err))
}

func TestUnpackNeverEscapesWhateverComes(t *testing.T) {
	t.Parallel()
	part := rapid.SampledFrom([]string{"..", "a", "b", "l", "victim", "/", ".", ".wh.a", ".wh..wh..opq", ".wh.victim"})
	kind := rapid.SampledFrom([]byte{tar.TypeReg, tar.TypeDir, tar.TypeSymlink, tar.TypeLink, tar.TypeChar})
	rapid.Check(t, func(rt *rapid.T) {
		var entries []entry
		for range rapid.IntRange(1, 8).Draw(rt, "n") {
			e := entry{
				name: filepath.Join(rapid.SliceOfN(part, 1, 4).Draw(rt, "name")...), kind: kind.Draw(rt, "kind"),
				link: filepath.Join(rapid.SliceOfN(part, 0, 4).Draw(rt, "link")...),
			}
			if e.kind == tar.TypeReg {
				e.text, e.link = "bad", ""
			}
			if e.name == "/" || e.name == "" {
				e.name = "top"
			}
			entries = append(entries, e)
		}
		_, _ = tryUnpack(t, entries...)
	})
}
