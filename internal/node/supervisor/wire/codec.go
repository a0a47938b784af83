package wire

import (
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"time"
)

// ErrMalformed is a message that cannot be read.
var ErrMalformed = errors.New("malformed message")

// Encoder appends values to B.
type Encoder struct{ B []byte }

// Uint appends an unsigned number.
func (e *Encoder) Uint(v uint64) { e.B = binary.AppendUvarint(e.B, v) }

// Int appends a signed number.
func (e *Encoder) Int(v int64) { e.B = binary.AppendVarint(e.B, v) }

// Bool appends a truth value.
func (e *Encoder) Bool(v bool) {
	if v {
		e.Uint(1)
	} else {
		e.Uint(0)
	}
}

// Str appends a string of any bytes.
func (e *Encoder) Str(s string) { e.Uint(uint64(len(s))); e.B = append(e.B, s...) }

// Bytes appends bytes.
func (e *Encoder) Bytes(b []byte) { e.Uint(uint64(len(b))); e.B = append(e.B, b...) }

// Strs appends a list of strings.
func (e *Encoder) Strs(l []string) {
	e.Uint(uint64(len(l)))
	for _, s := range l {
		e.Str(s)
	}
}

// Map appends a map, sorted by key.
func (e *Encoder) Map(m map[string]string) {
	e.Uint(uint64(len(m)))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		e.Str(k)
		e.Str(m[k])
	}
}

// Time appends a point in time; the zero time stays zero.
func (e *Encoder) Time(t time.Time) {
	if t.IsZero() {
		e.Int(0)
		return
	}
	e.Int(t.UnixNano())
}

// Decoder takes values off B. At the end of B every further value is zero (older sender); after a malformed one too,
// and Err is set.
type Decoder struct {
	B   []byte
	Err error
}

// fail drops the rest, so that all that is still taken is zero.
func (d *Decoder) fail() {
	d.Err, d.B = ErrMalformed, nil
}

// Uint takes an unsigned number.
func (d *Decoder) Uint() uint64 {
	if len(d.B) == 0 {
		return 0
	}
	v, n := binary.Uvarint(d.B)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.B = d.B[n:]
	return v
}

// Int takes a signed number.
func (d *Decoder) Int() int64 {
	if len(d.B) == 0 {
		return 0
	}
	v, n := binary.Varint(d.B)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.B = d.B[n:]
	return v
}

// Bool takes a truth value.
func (d *Decoder) Bool() bool { return d.Uint() != 0 }

// Bytes takes bytes; they point into B.
func (d *Decoder) Bytes() []byte {
	n := d.Uint()
	if n > uint64(len(d.B)) {
		d.fail()
		return nil
	}
	b := d.B[:n:n]
	d.B = d.B[n:]
	return b
}

// Str takes a string.
func (d *Decoder) Str() string { return string(d.Bytes()) }

// Len takes the length of a list whose elements have at least one byte each.
func (d *Decoder) Len() int {
	n := d.Uint()
	if n > uint64(len(d.B)) {
		d.fail()
		return 0
	}
	return int(n)
}

// Strs takes a list of strings.
func (d *Decoder) Strs() []string {
	n := d.Len()
	if n == 0 {
		return nil
	}
	l := make([]string, 0, n)
	for range n {
		l = append(l, d.Str())
	}
	return l
}

// Map takes a map.
func (d *Decoder) Map() map[string]string {
	n := d.Len()
	if n == 0 {
		return nil
	}
	m := make(map[string]string, n)
	for range n {
		k := d.Str()
		m[k] = d.Str()
	}
	return m
}

// Time takes a point in time.
func (d *Decoder) Time() time.Time {
	if v := d.Int(); v != 0 {
		return time.Unix(0, v)
	}
	return time.Time{}
}
