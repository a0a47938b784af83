package pipelink

import (
	"bytes"
	"encoding/binary"
	"io"
)

// A chunk: magic (4 bytes), sum of the rest (8), kind (1), direction (1), length of the payload (2), connection (8),
// number in its connection and direction (8), payload.
const (
	headerSize = 32
	summedFrom = 12
	// MaxPayload is how much a chunk carries at most.
	MaxPayload = 16 << 10
	padding    = headerSize + MaxPayload
)

var magic = []byte("\xd7dr1") // a constant

type kind byte

const (
	kindData  kind = 1
	kindClose kind = 2
	kindPing  kind = 3 // the agent's: it is still there
)

type direction byte

const (
	fromAgent direction = 1
	fromInit  direction = 2
)

// chunk is what travels. Its number tells a gap, its sum whether it was made by who has the key.
type chunk struct {
	kind       kind
	connection uint64
	number     uint64
	payload    []byte // valid until the next one is read
}

// put appends the chunk to b.
func (c chunk) put(b []byte, key *Key, d direction) []byte {
	start := len(b)
	b = append(b, magic...)
	b = append(b, 0, 0, 0, 0, 0, 0, 0, 0, byte(c.kind), byte(d))
	b = binary.LittleEndian.AppendUint16(b, uint16(len(c.payload))) // at most MaxPayload
	b = binary.LittleEndian.AppendUint64(b, c.connection)
	b = binary.LittleEndian.AppendUint64(b, c.number)
	b = append(b, c.payload...)
	binary.LittleEndian.PutUint64(b[start+len(magic):], sum(key, b[start+summedFrom:]))
	return b
}

// reader finds chunks in a stream.
type reader struct {
	r    io.Reader
	key  *Key
	d    direction
	buf  []byte // what was read and not yet taken
	used int    // of buf: the last chunk
}

// next returns the next whole and true chunk of the direction; what is between is passed over.
func (r *reader) next() (chunk, error) {
	r.skip(r.used)
	for {
		if i := bytes.Index(r.buf, magic); i >= 0 {
			r.skip(i)
		} else {
			r.skip(max(0, len(r.buf)-len(magic)+1))
		}
		if err := r.fill(headerSize); err != nil {
			return chunk{}, err
		}
		if !bytes.HasPrefix(r.buf, magic) {
			continue
		}
		n := int(binary.LittleEndian.Uint16(r.buf[14:]))
		if n > MaxPayload || direction(r.buf[13]) != r.d {
			r.skip(1)
			continue
		}
		if err := r.fill(headerSize + n); err != nil {
			return chunk{}, err
		}
		if binary.LittleEndian.Uint64(r.buf[len(magic):]) != sum(r.key, r.buf[summedFrom:headerSize+n]) {
			r.skip(1)
			continue
		}
		r.used = headerSize + n
		return chunk{
			kind: kind(r.buf[12]), connection: binary.LittleEndian.Uint64(r.buf[16:]), number: binary.LittleEndian.Uint64(r.buf[24:]),
			payload: r.buf[headerSize:r.used],
		}, nil
	}
}

// skip drops bytes from the start of what is buffered; the last chunk's payload is no longer valid.
func (r *reader) skip(n int) {
	r.buf = r.buf[:copy(r.buf, r.buf[n:])]
	r.used = 0
}

// fill reads until n bytes are buffered; n is at most one chunk, for which there is room twice.
func (r *reader) fill(n int) error {
	if r.buf == nil {
		r.buf = make([]byte, 0, 2*padding)
	}
	for len(r.buf) < n {
		got, err := r.r.Read(r.buf[len(r.buf):cap(r.buf)])
		r.buf = r.buf[:len(r.buf)+got]
		if got == 0 && err != nil {
			return err
		}
	}
	return nil
}
