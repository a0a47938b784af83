package image

import (
	"bufio"
	"bytes"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/drover-project/drover"
)

// maxWindow bounds the memory that a zstd stream may ask for; the format's tools need a switch for more than that too.
const maxWindow = 128 << 20

// decompress reads what r holds in plain, by its first bytes: gzip, zstd or nothing. end frees what that took, not r; nil
// if there was nothing to do.
func decompress(r io.Reader) (plain io.Reader, end func(), err error) {
	b := bufio.NewReaderSize(r, 64<<10)
	head, _ := b.Peek(6) // an error comes with the first read
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(b)
		if err != nil {
			return nil, nil, fmt.Errorf("reading its gzip: %w", err)
		}
		return z, func() { _ = z.Close() }, nil
	case bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(b, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, nil, fmt.Errorf("reading its zstd: %w", err)
		}
		return z, z.Close, nil
	case bytes.HasPrefix(head, []byte("BZh")), bytes.HasPrefix(head, []byte("\xfd7zXZ\x00")):
		return nil, nil, drover.Errorf(drover.Invalid, "it is compressed with bzip2 or xz: only gzip, zstd and none are known")
	}
	return b, nil, nil
}

// bounded fails once more than left was read: what is skipped costs time too.
type bounded struct {
	r    io.Reader
	left int64
}

// Read reads.
func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, drover.Errorf(drover.TooLarge, "it is larger than an image may be")
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}
