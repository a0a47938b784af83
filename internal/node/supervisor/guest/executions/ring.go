package executions

// ring keeps the last bytes of a stream: those of [start, end) in the stream's own offsets.
type ring struct {
	buf        []byte // its length is a power of two
	start, end int64
}

// A stream's buffer starts small, since most commands print little, and grows to the most that a program may be ahead of a reader.
const (
	ringMin = 4 << 10
	ringMax = 1 << 20
)

// room says how many bytes may be put without dropping any that lie at or after keep.
func (r *ring) room(keep int64) int {
	return ringMax - int(r.end-max(keep, r.start))
}

// put appends, and drops the oldest bytes where there is no room.
func (r *ring) put(p []byte) {
	if len(p) > ringMax {
		r.end += int64(len(p) - ringMax)
		p = p[len(p)-ringMax:]
		r.start = r.end
	}
	r.grow(int(r.end-r.start) + len(p))
	for len(p) > 0 {
		at := int(r.end) & (len(r.buf) - 1)
		n := copy(r.buf[at:], p)
		p = p[n:]
		r.end += int64(n)
	}
	r.start = max(r.start, r.end-int64(len(r.buf)))
}

// grow makes the buffer large enough for n bytes, up to ringMax.
func (r *ring) grow(n int) {
	size := max(len(r.buf), ringMin)
	for size < n && size < ringMax {
		size *= 2
	}
	r.resize(size)
}

// shrink makes the buffer as small as what is in it allows.
func (r *ring) shrink() {
	size := 1
	for size < int(r.end-r.start) {
		size *= 2
	}
	r.resize(min(size, len(r.buf)))
}

// resize gives the ring a buffer of that size, a power of two, which what is in it fits into; 0 is that of an empty one.
func (r *ring) resize(size int) {
	if size == len(r.buf) {
		return
	}
	old := *r
	r.buf = make([]byte, size)
	r.end = r.start
	for r.end < old.end {
		at := int(r.end) & (len(old.buf) - 1)
		part := old.buf[at:min(len(old.buf), at+int(old.end-r.end))]
		for len(part) > 0 {
			n := copy(r.buf[int(r.end)&(size-1):], part)
			part = part[n:]
			r.end += int64(n)
		}
	}
}

// get copies bytes from the offset on, which must be in [start, end].
func (r *ring) get(from int64, p []byte) int {
	n := min(int64(len(p)), r.end-from)
	for done := int64(0); done < n; {
		at := int(from+done) & (len(r.buf) - 1)
		done += int64(copy(p[done:n], r.buf[at:]))
	}
	return int(n)
}
