package executor

import (
	"context"
	"time"
)

// Slots counts executions where a quota bounds how many run at once. A slot is free again when the execution's end is told, or its
// runner ended.
type Slots interface {
	// Take takes a slot before an execution is started; fresh is false if it has one, or needs none. Errors: Exhausted; Gone.
	Take(ctx context.Context, allocID, executionID string) (fresh bool, err error)
	// GiveBack frees the slot of an execution that was not started.
	GiveBack(ctx context.Context, allocID, executionID string) error
}

// giveBackWithin bounds how long a start that failed waits until its slot is free.
const giveBackWithin = 2 * time.Second

// takeSlot takes a slot for an execution, and returns what to do if it is not started.
func (s *Executor) takeSlot(ctx context.Context, allocID, executionID string) (giveBack func(), err error) {
	if s.deps.Slots == nil {
		return func() {}, nil
	}
	fresh, err := s.deps.Slots.Take(ctx, allocID, executionID)
	if err != nil || !fresh {
		return func() {}, err
	}
	return func() {
		ctx, cancel := s.deps.Clock.WithTimeout(context.WithoutCancel(ctx), giveBackWithin)
		defer cancel()
		if err := s.deps.Slots.GiveBack(ctx, allocID, executionID); err != nil {
			s.deps.Log.Warn("an execution that was not started counts in its quota until its runner ends", "execution", executionID, "error", err)
		}
	}, nil
}
