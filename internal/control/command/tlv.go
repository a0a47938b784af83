package command

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/drover-project/drover"
)

// The hot records (allocations, their tasks, their updates) are not msgpack but fields of
//
//	number and shape (uvarint: number<<1 | 1 if a length follows) | value (uvarint) or length (uvarint) and bytes
//
// Zero values are left out, so that a record is as long as what it says; unknown numbers are skipped, so that fields
// may be added. Numbers never change their meaning.

// writer appends fields to buf.
type writer struct{ buf []byte }

func (w *writer) uint(n int, v uint64) {
	if v != 0 {
		w.buf = binary.AppendUvarint(w.buf, uint64(n)<<1)
		w.buf = binary.AppendUvarint(w.buf, v)
	}
}

func (w *writer) int(n int, v int64) { w.uint(n, uint64(v<<1)^uint64(v>>63)) }

func (w *writer) bool(n int, v bool) {
	if v {
		w.uint(n, 1)
	}
}

func (w *writer) string(n int, s string) {
	if s != "" {
		w.element(n, s)
	}
}

// element is string for members of lists and maps, which may be empty.
func (w *writer) element(n int, s string) {
	w.head(n, len(s))
	w.buf = append(w.buf, s...)
}

func (w *writer) head(n, length int) {
	w.buf = binary.AppendUvarint(w.buf, uint64(n)<<1|1)
	w.buf = binary.AppendUvarint(w.buf, uint64(length))
}

// message writes what inner writes as one field.
func (w *writer) message(n int, inner func(*writer)) {
	w.buf = binary.AppendUvarint(w.buf, uint64(n)<<1|1)
	at := len(w.buf)
	w.buf = append(w.buf, 0) // most are shorter than 128 bytes
	inner(w)
	length := len(w.buf) - at - 1
	if length < 0x80 {
		w.buf[at] = byte(length)
		return
	}
	var size [binary.MaxVarintLen64]byte
	k := binary.PutUvarint(size[:], uint64(length))
	w.buf = append(w.buf, size[:k-1]...)
	copy(w.buf[at+k:], w.buf[at+1:at+1+length])
	copy(w.buf[at:], size[:k])
}

// time writes an instant; its location is not kept.
func (w *writer) time(n int, t time.Time) {
	if !t.IsZero() {
		w.message(n, func(w *writer) {
			w.int(1, t.Unix())
			w.uint(2, uint64(t.Nanosecond()))
		})
	}
}

// msgpack writes a rarer value in the log's general dialect.
func (w *writer) msgpack(n int, v any) error {
	data, err := Marshal(nil, v)
	if err != nil {
		return err
	}
	w.head(n, len(data))
	w.buf = append(w.buf, data...)
	return nil
}

// reader takes fields from data. After the last one, or the first malformed one, next returns false.
type reader struct {
	data    []byte
	strings *Interner
	bad     bool

	n     int    // number of the present field
	value uint64 // its value, if it has no bytes
	bytes []byte // its bytes
}

func (r *reader) next() bool {
	if len(r.data) == 0 || r.bad {
		return false
	}
	tag := r.uvarint()
	n := r.uvarint()
	r.n, r.value, r.bytes = int(tag>>1&math.MaxInt32), n, nil
	if tag&1 == 1 {
		if n > uint64(len(r.data)) {
			r.bad = true
			return false
		}
		r.bytes, r.data = r.data[:n:n], r.data[n:]
	}
	return !r.bad
}

// count returns how many fields of that number are to come, at least as many as next finds.
func (r *reader) count(number int) (n int) {
	ahead := *r
	for ahead.next() {
		if ahead.n == number {
			n++
		}
	}
	return n
}

func (r *reader) uvarint() uint64 {
	v, k := binary.Uvarint(r.data)
	if k <= 0 {
		r.bad, r.data = true, nil
		return 0
	}
	r.data = r.data[k:]
	return v
}

func (r *reader) int() int64 { return int64(r.value>>1) ^ -int64(r.value&1) }

func (r *reader) bool() bool { return r.value != 0 }

func (r *reader) string() string { return string(r.bytes) }

// shared is string for what many records have in common.
func (r *reader) shared() string { return r.strings.of(r.bytes) }

// inner returns a reader of the present field's fields.
func (r *reader) inner() reader { return reader{data: r.bytes, strings: r.strings} }

// done passes on whether an inner reader found everything well-formed.
func (r *reader) done(inner *reader) { r.bad = r.bad || inner.bad }

func (r *reader) time() (t time.Time) {
	var seconds int64
	var nanos uint64
	x := r.inner()
	for x.next() {
		switch x.n {
		case 1:
			seconds = x.int()
		case 2:
			nanos = x.value
		}
	}
	r.done(&x)
	return time.Unix(seconds, int64(nanos%1e9)).UTC()
}

func (r *reader) msgpack(v any) {
	if Unmarshal(r.bytes, v) != nil {
		r.bad = true
	}
}

func (r *reader) err(what string) error {
	if r.bad {
		return drover.Errorf(drover.Invalid, "malformed %s", what)
	}
	return nil
}

// Interner makes equal strings share their bytes, and empty maps be one. Not for several goroutines at once. A nil one
// shares nothing.
type Interner struct {
	strings map[string]string
	empty   map[string]string // never written
}

// NewInterner returns an Interner that knows nothing yet.
func NewInterner() *Interner {
	return &Interner{strings: map[string]string{}, empty: map[string]string{}}
}

// What an Interner keeps at most; it begins anew behind that.
const (
	maxInterned       = 1 << 16
	maxInternedLength = 64
)

func (in *Interner) of(b []byte) string {
	if in == nil || len(b) > maxInternedLength {
		return string(b)
	}
	if len(b) == 0 {
		return ""
	}
	if s, ok := in.strings[string(b)]; ok { // the compiler makes no string for this
		return s
	}
	if len(in.strings) >= maxInterned {
		clear(in.strings)
	}
	s := string(b)
	in.strings[s] = s
	return s
}

// none returns an empty map that many values share.
func (in *Interner) none() map[string]string {
	if in == nil {
		return map[string]string{}
	}
	return in.empty
}
