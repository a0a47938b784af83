package timeline

import (
	"time"

	"github.com/drover-project/drover/execution"
)

// The bounds of a timeline.
const (
	firstGap = 10 * time.Millisecond // of marks of one stream
	maxMarks = 4096                  // then the gap doubles
	markSize = 24                    // bytes of memory
)

// Mark says that a stream had come so far at a time.
type Mark struct {
	At     time.Duration // since the start
	End    int64
	Stream execution.Stream
}

// Timeline is when output came: for each stream a mark for each gap of time in which some did.
type Timeline struct {
	gap   time.Duration // 0: the first
	marks []Mark
	last  [2]int // the newest mark of stdout and of stderr, counted from 1; 0: there is none
}

// Note has the stream come so far at a time, which is not before that of earlier calls.
func (t *Timeline) Note(at time.Duration, s execution.Stream, end int64) {
	if t.gap == 0 {
		t.gap = firstGap
	}
	if t.put(Mark{at, end, s}); len(t.marks) > maxMarks {
		t.thin()
	}
}

// put adds a mark, or lets the newest one of its stream tell of it too if that is less than the gap before.
func (t *Timeline) put(m Mark) {
	last := &t.last[0]
	if m.Stream == execution.Stderr {
		last = &t.last[1]
	}
	if *last > 0 && m.At-t.marks[*last-1].At < t.gap {
		t.marks[*last-1].End = m.End
		return
	}
	t.marks = append(t.marks, m)
	*last = len(t.marks)
}

// thin makes gaps larger, until there is room for as many marks again.
func (t *Timeline) thin() {
	for len(t.marks) > maxMarks/2 {
		t.gap *= 2
		all := t.marks
		t.marks, t.last = all[:0], [2]int{}
		for _, m := range all { // what is written is behind what is read
			t.put(m)
		}
	}
}

// Resolution bounds how much later than its mark a byte came: where marks were joined, those may have told of a gap already.
func (t *Timeline) Resolution() time.Duration {
	if t.gap <= firstGap {
		return firstGap
	}
	return 2 * t.gap
}

// Bytes is what it takes of memory.
func (t *Timeline) Bytes() int64 { return int64(len(t.marks)) * markSize }

// Marks returns the marks in their order; they change with the next Note.
func (t *Timeline) Marks() []Mark { return t.marks }
