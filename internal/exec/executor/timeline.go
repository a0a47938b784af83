package executor

import (
	"context"
	"time"

	"github.com/drover-project/drover/execution"
)

// The bounds of a timeline.
const (
	firstGap = 10 * time.Millisecond // of marks of one stream
	maxMarks = 4096                  // then the gap doubles
	markSize = 24                    // bytes of memory
)

// mark says that a stream had come so far at a time.
type mark struct {
	at     time.Duration // since the start
	end    int64
	stream execution.Stream
}

// timeline is when output came: for each stream a mark for each gap of time in which some did.
type timeline struct {
	gap   time.Duration // 0: the first
	marks []mark
	last  [2]int // the newest mark of stdout and of stderr, counted from 1; 0: there is none
}

// note has the stream come so far at a time, which is not before that of earlier calls.
func (t *timeline) note(at time.Duration, s execution.Stream, end int64) {
	if t.gap == 0 {
		t.gap = firstGap
	}
	if t.put(mark{at, end, s}); len(t.marks) > maxMarks {
		t.thin()
	}
}

// put adds a mark, or lets the newest one of its stream tell of it too if that is less than the gap before.
func (t *timeline) put(m mark) {
	last := &t.last[0]
	if m.stream == execution.Stderr {
		last = &t.last[1]
	}
	if *last > 0 && m.at-t.marks[*last-1].at < t.gap {
		t.marks[*last-1].end = m.end
		return
	}
	t.marks = append(t.marks, m)
	*last = len(t.marks)
}

// thin makes gaps larger, until there is room for as many marks again.
func (t *timeline) thin() {
	for len(t.marks) > maxMarks/2 {
		t.gap *= 2
		all := t.marks
		t.marks, t.last = all[:0], [2]int{}
		for _, m := range all { // what is written is behind what is read
			t.put(m)
		}
	}
}

// resolution bounds how much later than its mark a byte came: where marks were joined, those may have told of a gap already.
func (t *timeline) resolution() time.Duration {
	if t.gap <= firstGap {
		return firstGap
	}
	return 2 * t.gap
}

// bytes is what it takes of memory.
func (t *timeline) bytes() int64 { return int64(len(t.marks)) * markSize }

// noteLocked notes that a stream came so far. Times are since the command started, or since this process sees it.
func (x *Execution) noteLocked(s execution.Stream) {
	now := x.clock.Now()
	if x.first.IsZero() {
		x.first = now
	}
	x.journal.times.note(now.Sub(x.first), s, x.journal.of(s).end)
}

// Timeline says when the output came.
func (x *Execution) Timeline() execution.Timeline {
	x.mu.Lock()
	defer x.mu.Unlock()
	times := &x.journal.times
	t := execution.Timeline{
		ExecutionID: x.id, StartedAt: x.first, Resolution: times.resolution(), Partial: x.begun.IsZero(),
		Marks: make([]execution.Mark, 0, len(times.marks)),
	}
	if !x.first.IsZero() && x.endedAt.After(x.first) {
		t.Ended = x.endedAt.Sub(x.first)
	}
	for _, m := range times.marks {
		name := execution.MessageStdout
		if m.stream == execution.Stderr {
			name = execution.MessageStderr
		}
		t.Marks = append(t.Marks, execution.Mark{At: m.at, Stream: name, End: m.end})
	}
	return t
}

// Timeline says when an execution's output came. Errors: NotFound.
func (s *Service) Timeline(ctx context.Context, executionID string) (execution.Timeline, error) {
	x, err := s.Execution(ctx, executionID)
	if err != nil {
		return execution.Timeline{}, err
	}
	return x.Timeline(), nil
}
