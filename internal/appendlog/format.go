package appendlog

import (
	"bufio"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
)

// Format reads the next record of a file: what it holds, and how many bytes it has in the file. Errors: io.EOF behind the
// last record, ErrTorn for one that is not whole, and those of reading.
type Format func(r *bufio.Reader) (data []byte, size int64, err error)

// ErrTorn is a Format's error for a record that was not written whole.
var ErrTorn = errors.New("torn record")

// Lines are records that end with a newline, which belongs to their data.
func Lines(r *bufio.Reader) (data []byte, size int64, err error) {
	line, err := r.ReadBytes('\n')
	if errors.Is(err, io.EOF) && len(line) > 0 {
		err = ErrTorn
	}
	return line, int64(len(line)), err
}

// A frame is the length of the data and their checksum (CRC-32C), both 4 bytes and little-endian, and then the data.
const (
	frameHead = 8
	maxFrame  = 64 << 20 // bytes of data
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Frames are records that AppendFrame made. They hold any bytes, and a damaged one is noticed.
func Frames(r *bufio.Reader) (data []byte, size int64, err error) {
	var head [frameHead]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, 0, torn(err, io.ErrUnexpectedEOF)
	}
	n := binary.LittleEndian.Uint32(head[:])
	if n == 0 || n > maxFrame {
		return nil, 0, ErrTorn
	}
	data = make([]byte, n)
	if _, err := io.ReadFull(r, data); err != nil {
		return nil, 0, torn(err, io.ErrUnexpectedEOF, io.EOF)
	}
	if crc32.Checksum(data, castagnoli) != binary.LittleEndian.Uint32(head[4:]) {
		return nil, 0, ErrTorn
	}
	return data, frameHead + int64(n), nil
}

// torn returns ErrTorn in place of the errors that say that the file ended too early.
func torn(err error, early ...error) error {
	for _, e := range early {
		if errors.Is(err, e) {
			return ErrTorn
		}
	}
	return err
}

// FrameSize is how many bytes a frame of so many bytes of data has in a file.
func FrameSize(data int) int { return frameHead + data }

// AppendFrame appends a frame to all. write appends its data, at least one byte.
func AppendFrame(all []byte, write func([]byte) []byte) []byte {
	begin := len(all)
	all = write(append(all, make([]byte, frameHead)...))
	data := all[begin+frameHead:]
	binary.LittleEndian.PutUint32(all[begin:], uint32(len(data)))
	binary.LittleEndian.PutUint32(all[begin+4:], crc32.Checksum(data, castagnoli))
	return all
}
