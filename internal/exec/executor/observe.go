package executor

import (
	"context"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/clock"
)

// The pace of observers, which bounds what each costs: it is woken so seldom, and reads at most so much in so much time, 25 MB/s.
const (
	observeEvery = 25 * time.Millisecond
	observeBurst = 256 << 10
	observeRest  = 10 * time.Millisecond
)

// observer reads along. The program never waits for it, and does not live on for it: if it is too slow it is told what it missed. It
// can do nothing else.
type observer struct {
	Reader
	burst int // bytes read since it rested; used by Next only
}

var _ execution.Session = (*observer)(nil)

// Observe attaches an observer to an execution, from the offsets on. Of one that ended at another server the output comes from its
// runner. Errors: NotFound; Unavailable: the runner's node is away.
func (s *Executor) Observe(ctx context.Context, executionID string, from execution.Offsets) (execution.Session, error) {
	x, err := s.Execution(ctx, executionID)
	if err != nil {
		return nil, err
	}
	if err := s.fetch(ctx, x); err != nil {
		return nil, err
	}
	return &observer{Reader: Reader{Execution: x, from: atLeastZero(from)}}, nil // it is not among the readers, who are waited for
}

// Next serves execution.Session.
func (o *observer) Next(ctx context.Context) (execution.Frame, error) {
	if o.burst >= observeBurst {
		o.burst = 0
		clock.Sleep(ctx, o.clock, observeRest)
	}
	for {
		o.mu.Lock()
		f, ok, err := o.nextLocked()
		if ok || err != nil {
			o.mu.Unlock()
			o.burst += len(f.Data)
			return f, err
		}
		changed := o.changedLocked()
		o.mu.Unlock()
		select {
		case <-changed:
			o.burst = 0
			clock.Sleep(ctx, o.clock, observeEvery)
		case <-ctx.Done():
			return execution.Frame{}, context.Cause(ctx)
		}
	}
}

// errObserves is what an observer hears who wants to do something.
func errObserves() error {
	return drover.Errorf(drover.Invalid, "who observes an execution only reads: attach without observe to do more")
}

// Write serves execution.Session.
func (o *observer) Write(context.Context, []byte) error { return errObserves() }

// CloseStdin serves execution.Session.
func (o *observer) CloseStdin(context.Context) error { return errObserves() }

// Resize serves execution.Session.
func (o *observer) Resize(context.Context, execution.WindowSize) error { return errObserves() }

// Signal serves execution.Session.
func (o *observer) Signal(context.Context, string) error { return errObserves() }
