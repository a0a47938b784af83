package journal

import (
	"slices"
	"sort"
	"time"

	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/exec/timeline"
)

// chunkSize is how much of a stream is put together: many small writes become few frames for a slow reader.
const chunkSize = 32 << 10

// chunk is a piece of a stream. Bytes are only ever appended, so what a reader got of it stays as it is.
type chunk struct {
	seq    uint64 // over both streams: the order of arrival
	offset int64
	data   []byte
}

// end is the offset behind the chunk's last byte.
func (c *chunk) end() int64 { return c.offset + int64(len(c.data)) }

// Stream is what is kept of one stream: the bytes from its start to its end.
type Stream struct {
	chunks     []chunk
	start, end int64
}

// Journal keeps both streams, their order, and when they came. The zero value is empty.
type Journal struct {
	streams [2]Stream // stdout, stderr
	seq     uint64
	last    execution.Stream // the stream of the newest chunk
	times   timeline.Timeline
}

// Of returns what is kept of a stream; everything but stderr counts as stdout.
func (j *Journal) Of(s execution.Stream) *Stream {
	if s == execution.Stderr {
		return &j.streams[1]
	}
	return &j.streams[0]
}

// Add appends data at the offset; a gap (bytes that the runner dropped) moves the start behind it.
func (j *Journal) Add(s execution.Stream, offset int64, data []byte) {
	l := j.Of(s)
	if offset > l.end {
		l.chunks, l.start, l.end = nil, offset, offset
	} else if behind := l.end - offset; behind > 0 { // delivered again after re-attaching
		if behind >= int64(len(data)) {
			return
		}
		data = data[behind:]
	}
	if n := len(l.chunks); n > 0 && j.last == s && len(l.chunks[n-1].data)+len(data) <= chunkSize {
		l.chunks[n-1].data = append(l.chunks[n-1].data, data...)
	} else {
		j.seq++
		l.chunks = append(l.chunks, chunk{seq: j.seq, offset: l.end, data: slices.Clone(data)})
		j.last = s
	}
	l.end += int64(len(data))
}

// Start is the offset of the first byte that is kept.
func (l *Stream) Start() int64 { return l.start }

// End is the offset behind the last byte that came.
func (l *Stream) End() int64 { return l.end }

// Lost is a stream of which only the size is known: no byte of it is kept. It must be empty before.
func (l *Stream) Lost(size int64) { l.start, l.end = size, size }

// Trim drops whole chunks in front, as long as the bytes from keep on stay.
func (l *Stream) Trim(keep int64) {
	n := 0
	for n < len(l.chunks) && l.chunks[n].end() <= keep {
		n++
	}
	if n == 0 {
		return
	}
	l.chunks = slices.Delete(l.chunks, 0, n)
	l.start = l.end
	if len(l.chunks) > 0 {
		l.start = l.chunks[0].offset
	}
}

// At returns what is kept from the offset on, with its place in the order of both streams, up to the chunk's end; nil at the stream's end.
func (l *Stream) At(offset int64) (seq uint64, data []byte) {
	i := sort.Search(len(l.chunks), func(i int) bool { return l.chunks[i].end() > offset })
	if i == len(l.chunks) {
		return 0, nil
	}
	c := &l.chunks[i]
	data = c.data[offset-c.offset:]
	return c.seq, data[:len(data):len(data)]
}

// Note has the stream have come so far at a time since the start, which is not before that of earlier calls.
func (j *Journal) Note(at time.Duration, s execution.Stream) { j.times.Note(at, s, j.Of(s).end) }

// Times is when the output came, as Note said.
func (j *Journal) Times() *timeline.Timeline { return &j.times }

// Bytes is how much is kept.
func (j *Journal) Bytes() int64 {
	return j.streams[0].end - j.streams[0].start + j.streams[1].end - j.streams[1].start + j.times.Bytes()
}
