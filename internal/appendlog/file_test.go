package appendlog

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// both are the formats, each with a function that makes a record of a text without a newline.
var both = map[string]struct { // a constant
	format Format
	record func(text string) []byte
}{
	"lines": {Lines, func(text string) []byte { return []byte(text + "\n") }},
	"frames": {Frames, func(text string) []byte {
		return AppendFrame(nil, func(all []byte) []byte { return append(all, text+"\n"...) })
	}},
}

func open(t require.TestingT, path string, format Format) *File {
	f, err := Open(path, format)
	require.NoError(t, err)
	return f
}

func read(t require.TestingT, f *File) (texts []string) {
	var end int64
	require.NoError(t, f.Read(func(data []byte, at Span) {
		texts = append(texts, string(data[:len(data)-1]))
		require.Equal(t, end, at.At, "records lie side by side")
		end += at.Size
	}))
	require.Equal(t, end, f.Size())
	return texts
}

// Whatever a crash leaves of the last record, all others are there, and the next one comes behind them.
func TestTornWrites(t *testing.T) {
	t.Parallel()
	for name, c := range both {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "log")
			f := open(t, path, c.format)
			require.NoError(t, f.Append(c.record("a")))
			require.NoError(t, f.Append(c.record("")))
			whole := f.Size()
			require.NoError(t, f.Append(c.record("the last")))
			full := f.Size()
			require.NoError(t, f.Close())
			bytes, err := os.ReadFile(path)
			require.NoError(t, err)
			for cut := whole; cut < full; cut++ {
				require.NoError(t, os.WriteFile(path, bytes[:cut], 0o600))
				f := open(t, path, c.format)
				require.Equal(t, []string{"a", ""}, read(t, f), "cut at %d of %d", cut, full)
				require.Equal(t, whole, f.Size())
				require.NoError(t, f.Append(c.record("b")))
				require.Equal(t, []string{"a", "", "b"}, read(t, f))
				require.NoError(t, f.Close())
			}
		})
	}
}

// A damaged frame is noticed, and with it ends what can be trusted.
func TestDamagedFrames(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	f := open(t, path, Frames)
	record := both["frames"].record
	for _, text := range []string{"a", "b", "c"} {
		require.NoError(t, f.Append(record(text)))
	}
	require.NoError(t, f.Close())
	good, err := os.ReadFile(path)
	require.NoError(t, err)
	second := len(record("a"))
	for at := second; at < 2*second; at++ {
		bad := bytes.Clone(good)
		bad[at] ^= 0x55
		require.NoError(t, os.WriteFile(path, bad, 0o600))
		f := open(t, path, Frames)
		require.Equal(t, []string{"a"}, read(t, f), "byte %d", at)
		require.NoError(t, f.Close())
	}
	for _, head := range [][]byte{{0, 0, 0, 0, 0, 0, 0, 0}, {0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0}} {
		require.NoError(t, os.WriteFile(path, append(record("a"), head...), 0o600))
		f := open(t, path, Frames)
		require.Equal(t, []string{"a"}, read(t, f), "a length that no record has")
		require.NoError(t, f.Close())
	}
}

// The file says what a list of texts says, whatever is done to both, over restarts and torn ends.
func TestAgainstAList(t *testing.T) {
	t.Parallel()
	for name, c := range both {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, n := t.TempDir(), 0
			rapid.Check(t, func(t *rapid.T) {
				n++
				path := filepath.Join(dir, string(rune('a'+n%26))+".log")
				_ = os.Remove(path)
				f := open(t, path, c.format)
				defer func() { _ = f.Close() }() // the last one
				var want []string
				text := rapid.StringMatching(`[a-z]{0,20}`)
				t.Repeat(map[string]func(*rapid.T){
					"append": func(t *rapid.T) {
						s := text.Draw(t, "text")
						require.NoError(t, f.Append(c.record(s)))
						want = append(want, s)
					},
					"append several": func(t *rapid.T) {
						var all []byte
						for _, s := range rapid.SliceOfN(text, 0, 3).Draw(t, "texts") {
							all, want = append(all, c.record(s)...), append(want, s)
						}
						require.NoError(t, f.Append(all))
					},
					"replace": func(t *rapid.T) {
						want = rapid.SliceOfN(text, 0, 3).Draw(t, "texts")
						var all []byte
						for _, s := range want {
							all = append(all, c.record(s)...)
						}
						require.NoError(t, f.Replace(all))
					},
					"rotate": func(t *rapid.T) {
						require.NoError(t, f.Rotate(path+".1"))
						old := open(t, path+".1", c.format)
						require.Equal(t, strings.Join(want, ","), strings.Join(read(t, old), ","))
						require.NoError(t, old.Close())
						want = nil
					},
					"restart": func(t *rapid.T) {
						require.NoError(t, f.Close())
						if torn := rapid.SliceOfN(rapid.Byte(), 0, 7).Draw(t, "torn"); !bytes.Contains(torn, []byte("\n")) {
							extra, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
							require.NoError(t, err)
							_, err = extra.Write(torn) // shorter than a frame's head
							require.NoError(t, err)
							require.NoError(t, extra.Close())
						}
						f = open(t, path, c.format)
						read(t, f)
					},
					"": func(t *rapid.T) { require.Equal(t, strings.Join(want, ","), strings.Join(read(t, f), ",")) },
				})
			})
		})
	}
}

func TestWithoutAFileNothingIsKept(t *testing.T) {
	t.Parallel()
	f := open(t, "", Lines)
	require.False(t, f.Kept())
	require.NoError(t, f.Append([]byte("a\n")))
	require.NoError(t, f.Replace([]byte("a\n")))
	require.NoError(t, f.Rotate("x"))
	require.ErrorIs(t, f.ReadAt(make([]byte, 1), 0), io.EOF)
	require.Empty(t, read(t, f))
	require.NoError(t, f.Close())
}

// What fails leaves the file as it was.
func TestFailures(t *testing.T) {
	t.Parallel()
	_, err := Open(filepath.Join(t.TempDir(), "missing", "x"), Lines)
	require.ErrorIs(t, err, os.ErrNotExist)

	dir := t.TempDir()
	path := filepath.Join(dir, "log")
	f := open(t, path, Lines)
	require.NoError(t, f.Append([]byte("a\n")))
	require.NoError(t, os.Mkdir(path+".new", 0o700))
	require.Error(t, f.Replace([]byte("b\n")))
	require.Error(t, f.Rotate(filepath.Join(dir, "missing", "x")))
	require.NoError(t, f.Append([]byte("c\n")))
	require.Equal(t, []string{"a", "c"}, read(t, f))
	data := make([]byte, 2)
	require.NoError(t, f.ReadAt(data, 2))
	require.Equal(t, "c\n", string(data))
	require.ErrorIs(t, f.ReadAt(data, 4), io.EOF)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())

	require.NoError(t, f.Close())
	require.ErrorIs(t, f.Append([]byte("d\n")), os.ErrClosed)
	require.ErrorIs(t, f.Close(), os.ErrClosed)
	require.Error(t, f.Read(func([]byte, Span) {}))
}

// The bytes of a frame are those of files that are there already.
func TestBytesOfAFrame(t *testing.T) {
	t.Parallel()
	got := AppendFrame([]byte("x"), func(all []byte) []byte { return append(all, "ab"...) })
	sum := crc32.Checksum([]byte("ab"), crc32.MakeTable(crc32.Castagnoli))
	want := append(binary.LittleEndian.AppendUint32([]byte{'x', 2, 0, 0, 0}, sum), "ab"...)
	require.Equal(t, want, got)
	require.Len(t, got, 1+FrameSize(2))
}
