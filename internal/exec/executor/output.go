package executor

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/exec/journal"
)

// Of an execution that ended at another server, or before this process, only the receipt is known here. Its runner keeps the output for
// as long as it lives, within bounds (execution.Spec.Keep), and whoever attaches gets it from there.

// absent says that the output of an ended execution is not here. It is asked for by the first who attaches.
type absent struct {
	turn  chan struct{} // holds one element while nobody asks
	known bool          // it is here, or gone; whoever has the turn may look
}

func newAbsent() *absent {
	a := &absent{turn: make(chan struct{}, 1)}
	a.turn <- struct{}{}
	return a
}

// fetchFor bounds how long who attaches waits for a node that is away, and for the output.
const fetchFor = 5 * time.Second

// fetch gets the output of an execution that ended elsewhere, unless it is here or is gone for good: with its runner, or since the runner
// keeps newer ones. Errors: Unavailable: the node is away, and may have it; ctx's.
func (s *Executor) fetch(ctx context.Context, x *Execution) error {
	if x.absent == nil {
		return nil
	}
	limit, cancel := s.deps.Clock.WithTimeout(ctx, fetchFor)
	defer cancel()
	select {
	case <-x.absent.turn:
		defer func() { x.absent.turn <- struct{}{} }()
	case <-limit.Done():
		return notReached(ctx, x, limit.Err())
	}
	if x.absent.known {
		return nil
	}
	for wait := firstRetry; ; wait = min(2*wait, maxRetry) {
		got, err := s.kept(limit, x)
		switch code := drover.CodeOf(err); {
		case err == nil:
			s.fill(x, got)
			x.absent.known = true
			return nil
		case code == drover.NotFound, code == drover.Gone, code == drover.Conflict, code == drover.NotImplemented, code == drover.Invalid:
			x.absent.known = true
			return nil
		case !clock.Sleep(limit, s.deps.Clock, wait):
			return notReached(ctx, x, err)
		}
	}
}

// notReached is the error of who waited in vain for the output.
func notReached(ctx context.Context, x *Execution, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return drover.Errorf(drover.Unavailable, "the node that keeps the output of execution %s is not reached: ask again: %w", x.id, err)
}

// kept reads what the runner keeps of an ended execution. Errors: those of the runner and of the node.
func (s *Executor) kept(ctx context.Context, x *Execution) (got journal.Journal, err error) {
	node, err := s.deps.Keeping.Reach(x.runner.AllocID)
	if err != nil {
		return got, err
	}
	session, err := node.AttachExecution(ctx, x.runner.AllocID, taskName, x.id, execution.Offsets{})
	if err != nil {
		return got, err
	}
	defer session.Close() //nolint:errcheck // it has ended
	for {
		f, err := session.Next(ctx)
		switch {
		case errors.Is(err, io.EOF):
			return got, drover.Errorf(drover.Unavailable, "the session ended without a receipt")
		case err != nil:
			return got, err
		case f.Receipt != nil:
			return got, nil
		case !f.Started:
			got.Add(f.Stream, f.Offset, f.Data)
			l := got.Of(f.Stream)
			l.Trim(l.End() - x.window)
		}
	}
}

// fill gives the execution the output that its runner kept.
func (s *Executor) fill(x *Execution, got journal.Journal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x.mu.Lock()
	x.journal = got
	x.mu.Unlock()
	if s.byID[x.id] == x {
		s.bytes += got.Bytes()
		s.boundLocked()
	}
}

// attach attaches to an execution, whose output is fetched before if it is elsewhere. Errors: those of fetch.
func (s *Executor) attach(ctx context.Context, x *Execution, from execution.Offsets) (*Reader, error) {
	if err := s.fetch(ctx, x); err != nil {
		return nil, err
	}
	return x.Attach(from), nil
}
