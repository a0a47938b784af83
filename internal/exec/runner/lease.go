package runner

import (
	"context"
	"sync"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/exec/environment"
	"github.com/drover-project/drover/internal/exec/pool"
)

// How long work on a runner waits for its node, whose connection may have broken a moment ago, as all have that are to
// a server which restarted; and how often it looks.
const (
	reachFor   = 5 * time.Second
	reachEvery = 25 * time.Millisecond
)

// Acquire is AcquireNow for work that can wait some seconds for the runner's node.
func (s *Service) Acquire(ctx context.Context, runnerID string) (pool.Lease, error) {
	l, err := s.AcquireNow(ctx, runnerID)
	if drover.CodeOf(err) != drover.Unavailable {
		return l, err
	}
	limit := s.deps.Clock.Now().Add(reachFor)
	for drover.CodeOf(err) == drover.Unavailable && s.deps.Clock.Now().Before(limit) && clock.Sleep(ctx, s.deps.Clock, reachEvery) {
		l, err = s.AcquireNow(ctx, runnerID)
	}
	return l, err
}

// AcquireNow takes a claimed runner into use: its idle timer stands still until the lease is given back. Errors:
// NotFound, Gone, Unavailable.
func (s *Service) AcquireNow(ctx context.Context, runnerID string) (pool.Lease, error) {
	if err := s.awaitSync(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.claimedLocked(runnerID)
	if err != nil {
		return nil, err
	}
	w, err := s.deps.Workloads(r.alloc.NodeID)
	if err != nil {
		return nil, err
	}
	l := &lease{s: s, r: r, runner: r.public(), env: r.of, workloads: w}
	r.busy++
	s.uses++
	s.rearmLocked(r)
	return l, nil
}

type lease struct {
	s         *Service
	r         *runner
	runner    execution.Runner
	env       execution.Environment
	workloads exchange.Workloads
	once      sync.Once
}

func (l *lease) Runner() execution.Runner           { return l.runner }
func (l *lease) Environment() execution.Environment { return l.env }
func (l *lease) Gone() <-chan struct{}              { return l.r.life.Done() }

// WhenGone serves pool.Lease.
func (l *lease) WhenGone(f func()) (stop func() bool) { return context.AfterFunc(l.r.life, f) }

// Workloads serves pool.Lease. A node that came back is reached through another connection than the one of before.
func (l *lease) Workloads() exchange.Workloads {
	if w, err := l.s.deps.Workloads(l.runner.NodeID); err == nil {
		return w
	}
	return l.workloads // which says that it is away
}

// GoneReason serves pool.Lease.
func (l *lease) GoneReason() error {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	return l.r.reason
}

// Done serves pool.Lease.
func (l *lease) Done() {
	l.once.Do(func() {
		l.s.mu.Lock()
		defer l.s.mu.Unlock()
		l.r.busy--
		l.s.uses++
		if l.r.reason == nil {
			l.s.rearmLocked(l.r)
		}
	})
}

// Files returns the files of a claimed runner; done must be called when the work on them ended. Errors: as Acquire.
func (s *Service) Files(ctx context.Context, runnerID string) (files execution.Files, done func(), err error) {
	l, err := s.Acquire(ctx, runnerID)
	if err != nil {
		return nil, nil, err
	}
	files = l.Workloads().Files(l.Runner().AllocID, environment.TaskName)
	return leasedFiles{environment.Files(l.Environment(), files), l}, l.Done, nil
}

// Runner returns a claimed runner. Errors: NotFound, Gone.
func (s *Service) Runner(ctx context.Context, runnerID string) (execution.Runner, error) {
	if err := s.awaitSync(ctx); err != nil {
		return execution.Runner{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.claimedLocked(runnerID)
	if err != nil {
		return execution.Runner{}, err
	}
	return r.public(), nil
}
