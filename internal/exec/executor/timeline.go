package executor

import (
	"context"

	"github.com/drover-project/drover/execution"
)

// noteLocked notes that a stream came so far. Times are since the command started, or since this process sees it.
func (x *Execution) noteLocked(s execution.Stream) {
	now := x.clock.Now()
	if x.first.IsZero() {
		x.first = now
	}
	x.journal.Note(now.Sub(x.first), s)
}

// Timeline says when the output came.
func (x *Execution) Timeline() execution.Timeline {
	x.mu.Lock()
	defer x.mu.Unlock()
	times := x.journal.Times()
	t := execution.Timeline{
		ExecutionID: x.id, StartedAt: x.first, Resolution: times.Resolution(), Partial: x.begun.IsZero(),
		Marks: make([]execution.Mark, 0, len(times.Marks())),
	}
	if !x.first.IsZero() && x.endedAt.After(x.first) {
		t.Ended = x.endedAt.Sub(x.first)
	}
	for _, m := range times.Marks() {
		name := execution.MessageStdout
		if m.Stream == execution.Stderr {
			name = execution.MessageStderr
		}
		t.Marks = append(t.Marks, execution.Mark{At: m.At, Stream: name, End: m.End})
	}
	return t
}

// Timeline says when an execution's output came. Errors: NotFound.
func (s *Executor) Timeline(ctx context.Context, executionID string) (execution.Timeline, error) {
	x, err := s.Execution(ctx, executionID)
	if err != nil {
		return execution.Timeline{}, err
	}
	return x.Timeline(), nil
}
