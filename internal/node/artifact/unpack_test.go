package artifact

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
)

func tarball(t *testing.T, headers ...tar.Header) []byte {
	var buf bytes.Buffer
	z := gzip.NewWriter(&buf)
	w := tar.NewWriter(z)
	for _, h := range headers {
		data := []byte("data of " + h.Name)
		if h.Typeflag == tar.TypeReg {
			h.Size, h.Mode = int64(len(data)), 0o755
		}
		require.NoError(t, w.WriteHeader(&h))
		if h.Typeflag == tar.TypeReg {
			_, err := w.Write(data)
			require.NoError(t, err)
		}
	}
	require.NoError(t, w.Close())
	require.NoError(t, z.Close())
	return buf.Bytes()
}

func zipped(t *testing.T, names ...string) []byte {
	var buf bytes.Buffer
	w := zip.NewWriter(&buf)
	for _, n := range names {
		f, err := w.Create(n)
		require.NoError(t, err)
		_, err = f.Write([]byte("data of " + n))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return buf.Bytes()
}

// bomb is a small file that unpacks to one of that size.
func bomb(t *testing.T, kind byte, size int64) []byte {
	var buf bytes.Buffer
	z, err := gzip.NewWriterLevel(&buf, gzip.BestSpeed)
	require.NoError(t, err)
	w := tar.NewWriter(z)
	require.NoError(t, w.WriteHeader(&tar.Header{Name: "x", Typeflag: kind, Size: size, Mode: 0o644}))
	_, err = io.Copy(w, io.LimitReader(zeros{}, size))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.NoError(t, z.Close())
	return buf.Bytes()
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// directory is a zip file of nothing but entries of its directory, which are held in memory.
func directory(entries int) []byte {
	entry := make([]byte, 50)
	copy(entry, "PK\x01\x02")
	entry[28] = 4 // a name's length
	list := bytes.Repeat(entry, entries)
	end := make([]byte, 22)
	copy(end, "PK\x05\x06")
	binary.LittleEndian.PutUint16(end[8:], uint16(entries))
	binary.LittleEndian.PutUint16(end[10:], uint16(entries))
	binary.LittleEndian.PutUint32(end[12:], uint32(len(list)))
	return append(list, end...)
}

// What is not written counts as well, and what ends does so at once.
func TestUnpackingIsBounded(t *testing.T) {
	t.Parallel()
	root, err := os.OpenRoot(t.TempDir())
	require.NoError(t, err)
	defer root.Close()
	packed, err := gzip.NewReader(bytes.NewReader(bomb(t, 'Z', 4<<20))) // of a kind that is left out
	require.NoError(t, err)
	u := &unpacker{ctx: t.Context(), root: root, base: ".", left: 1 << 20, entries: 10}
	require.Equal(t, drover.TooLarge, drover.CodeOf(u.tar(&unpacked{ctx: t.Context(), r: packed, left: 1 << 20})))

	long := filepath.Join(t.TempDir(), "long.zip")
	require.NoError(t, os.WriteFile(long, directory(maxDirectory/50+1), 0o600))
	f, err := os.Open(long)
	require.NoError(t, err)
	defer f.Close()
	require.ErrorContains(t, u.unpack(f, "zip"), "the directory of the zip file has more than")

	ended, end := context.WithCancel(t.Context())
	end()
	for kind, data := range map[string][]byte{"tar.gz": bomb(t, tar.TypeReg, 1), "zip": zipped(t, "a")} {
		path := filepath.Join(t.TempDir(), "x")
		require.NoError(t, os.WriteFile(path, data, 0o600))
		f, err := os.Open(path)
		require.NoError(t, err)
		u := &unpacker{ctx: ended, root: root, base: ".", left: 1 << 20, most: 1 << 20, entries: 100, mostEntries: 100}
		require.ErrorIs(t, u.unpack(f, kind), context.Canceled, kind)
		require.NoError(t, f.Close())
	}
}

// What the giver of a stream cannot give now is no damage.
func TestStreamThatFails(t *testing.T) {
	t.Parallel()
	for code, want := range map[drover.Code]drover.Code{drover.Unavailable: drover.Unavailable, drover.Internal: drover.Invalid} {
		require.Equal(t, want, drover.CodeOf(unpackingError(drover.Errorf(code, "x"))))
	}
}
