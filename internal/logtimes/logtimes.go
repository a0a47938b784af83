package logtimes

import (
	"encoding/binary"
	"math"
	"time"
)

const (
	// Size is that of a mark in its file, in bytes.
	Size = 16
	// Every is how often a stream that is written to gets a mark, at most.
	Every = time.Second
	// Often is how many bytes lie between two marks of a stream that is written to faster.
	Often = 64 << 10
	// Grain is by how much the time of a file may be behind that of what was written to it.
	Grain = 20 * time.Millisecond

	free  = 1024    // marks that a file may have whatever its size is
	bytes = 4 << 10 // of a log file that pay for one more
)

// Mark says of a byte of a log file when it was written.
type Mark struct {
	At      time.Time
	Silence time.Duration // how long nothing had been written before; 0: that is not known
	Offset  int64
}

// Name is the file of the marks of a log file.
func Name(log string) string { return "." + log + ".times" }

// Room reports whether the marks of a log file of a size may become one more: their number is bounded by the log's size.
func Room(marks int, size int64) bool { return marks < free+int(size/bytes) }

// Limit is the most that the marks of a log file of a size can take, in bytes.
func Limit(size int64) int64 { return (free + size/bytes + 1) * Size }

// Append adds a mark as it stands in its file, in units of a millisecond: the time in 8 bytes, the silence and the offset in 4 each.
func Append(to []byte, m Mark) []byte {
	to = binary.BigEndian.AppendUint64(to, uint64(m.At.UnixMilli()))
	to = binary.BigEndian.AppendUint32(to, uint32(min(max(0, m.Silence.Milliseconds()), math.MaxUint32)))
	return binary.BigEndian.AppendUint32(to, uint32(min(m.Offset, math.MaxUint32)))
}

func parse(b []byte) Mark {
	return Mark{
		At:      time.UnixMilli(int64(binary.BigEndian.Uint64(b))),
		Silence: time.Duration(binary.BigEndian.Uint32(b[8:])) * time.Millisecond,
		Offset:  int64(binary.BigEndian.Uint32(b[12:])),
	}
}

// Since is where, in a log file of a size with these marks, begins what was written at a time or after it. It may be too early, by what is
// written between two marks, but never too late, unless somebody changed the clock back. Of a file without marks it is the beginning.
func Since(marks []byte, size int64, t time.Time) int64 {
	t = t.Truncate(time.Millisecond)
	before := int64(0)
	for ; len(marks) >= Size; marks = marks[Size:] {
		m := parse(marks)
		if m.Offset < before || m.Offset > size {
			break // not what the supervisor wrote, or of bytes that the disk lost
		}
		switch {
		case m.At.Before(t):
			before = m.Offset
		case m.At.Add(-m.Silence).Before(t):
			return m.Offset
		default:
			return before
		}
	}
	return before
}

// Reader says when what stands in a log file was written, of offsets that do not go back: it goes through the marks once.
type Reader struct {
	marks        []byte
	taken        int64 // of the file of marks, in bytes
	size, before int64
	at           time.Time
	bad          bool // what follows is not what the supervisor wrote
}

// Taken is how many bytes of the file of marks were given to it.
func (r *Reader) Taken() int64 { return r.taken }

// Add takes what follows in the file of marks. size is that of the log file by now.
func (r *Reader) Add(marks []byte, size int64) {
	marks = marks[:len(marks)/Size*Size]
	r.marks, r.taken, r.size = append(r.marks, marks...), r.taken+int64(len(marks)), size
}

// At is when what stands at an offset was written, or up to a second before; the zero time if no mark tells.
func (r *Reader) At(offset int64) time.Time {
	for ; len(r.marks) > 0 && !r.bad; r.marks = r.marks[Size:] {
		m := parse(r.marks)
		if r.bad = m.Offset < r.before; r.bad || m.Offset > r.size || m.Offset > offset {
			break
		}
		r.before, r.at = m.Offset, m.At
	}
	return r.at
}
