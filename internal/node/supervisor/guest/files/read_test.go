package files

import (
	"bytes"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
)

func (g *guest) read(req execution.FileRequest) (string, error) {
	var b bytes.Buffer
	err := g.Read(&b, func(execution.FileInfo) {}, req)
	return b.String(), err
}

func TestAPartOfAFile(t *testing.T) {
	t.Parallel()
	g := newGuest(t)
	whole := strings.Repeat("0123456789abcdef", 10_000) // more than a frame
	g.put(t, "f", whole)
	rapid.Check(t, func(t *rapid.T) {
		offset := rapid.Int64Range(0, int64(len(whole)+10)).Draw(t, "offset")
		length := rapid.Int64Range(0, int64(len(whole)+10)).Draw(t, "length")
		got, err := g.read(execution.FileRequest{Path: "f", Offset: offset, Length: length})
		require.NoError(t, err)
		want := whole[min(offset, int64(len(whole))):]
		if length > 0 {
			want = want[:min(length, int64(len(want)))]
		}
		require.Equal(t, len(want), len(got))
		require.True(t, want == got)
	})
}

func TestTheDescriptionComesFirst(t *testing.T) {
	t.Parallel()
	g := newGuest(t)
	g.put(t, "d/f", "abc")
	var b bytes.Buffer
	var heads []execution.FileInfo
	require.NoError(t, g.Read(&b, func(i execution.FileInfo) {
		require.Zero(t, b.Len())
		heads = append(heads, i)
	}, execution.FileRequest{Path: "./d/f"}))
	require.Len(t, heads, 1)
	require.Equal(t, "f", heads[0].Path)
	require.Equal(t, int64(3), heads[0].Size)
}

func TestOnlyRegularFilesAreRead(t *testing.T) {
	t.Parallel()
	g := newGuest(t)
	g.put(t, "f", "x")
	require.NoError(t, syscall.Mkfifo(g.path("pipe"), 0o600))
	require.NoError(t, os.Symlink("loop", g.path("loop")))
	for path, code := range map[string]drover.Code{
		"pipe": drover.Invalid, ".": drover.Invalid, "f/": drover.Invalid, "loop": drover.Invalid, "/dev/zero": drover.Invalid,
		"none": drover.NotFound, "f/x": drover.Invalid, "f\x00": drover.Invalid,
	} {
		_, err := g.read(execution.FileRequest{Path: path})
		require.Equal(t, code, drover.CodeOf(err), path) // and nothing waits for a writer of the pipe
	}
	for _, req := range []execution.FileRequest{{Path: "f", Offset: -1}, {Path: "f", Length: -1}} {
		_, err := g.read(req)
		require.Equal(t, drover.Invalid, drover.CodeOf(err))
	}
}

// TestFilesOfTheKernel have no size, and content.
func TestFilesOfTheKernel(t *testing.T) {
	t.Parallel()
	g := newGuest(t)
	got, err := g.read(execution.FileRequest{Path: "/proc/self/status"})
	require.NoError(t, err)
	require.Contains(t, got, "Pid:")
	got, err = g.read(execution.FileRequest{Path: "/proc/self/status", Length: 5})
	require.NoError(t, err)
	require.Equal(t, "Name:", got)
}
