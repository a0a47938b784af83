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
)

// How long work on a runner waits for its node, and how often it looks. The connection may have broken a moment ago: after a
// server's restart all have.
const (
	reachFor   = 5 * time.Second
	reachEvery = 25 * time.Millisecond
)

// Acquire is AcquireNow for work that can wait some seconds for the runner's node.
func (s *Service) Acquire(ctx context.Context, runnerID string) (*Lease, error) {
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
func (s *Service) AcquireNow(ctx context.Context, runnerID string) (l *Lease, err error) {
	if err := s.awaitSync(ctx); err != nil {
		return nil, err
	}
	s.tell(func(c *Core, now time.Time) { l, err = s.leaseLocked(c, now, runnerID) })
	if err != nil {
		return nil, s.unknown(runnerID, err)
	}
	return l, nil
}

// leaseLocked makes a lease, if the runner's node can be reached. It is called by an event.
func (s *Service) leaseLocked(c *Core, now time.Time, runnerID string) (*Lease, error) {
	r, err := c.Runner(runnerID)
	if err != nil {
		return nil, err
	}
	l := &Lease{s: s}
	if l.workloads, err = s.deps.Workloads(r.NodeID); err != nil {
		return nil, err
	}
	if l.runner, l.env, err = c.Lease(now, runnerID); err != nil {
		return nil, err
	}
	if l.life = s.lives[r.AllocID]; l.life == nil {
		l.life = &life{}
		l.life.ctx, l.life.end = context.WithCancel(context.Background()) //nolint:forbidigo // a lifetime, ended by performLocked
		s.lives[r.AllocID] = l.life
	}
	return l, nil
}

// life is that of a runner in use.
type life struct {
	ctx    context.Context
	end    context.CancelFunc
	reason error // why it ended; guarded by the service's mu
}

// Lease is a claimed runner in use. While a lease is held the runner's idle timer stands still.
type Lease struct {
	s         *Service
	life      *life
	runner    execution.Runner
	env       execution.Environment
	workloads exchange.Workloads
	once      sync.Once
}

// Runner is the runner as it was when the lease was taken.
func (l *Lease) Runner() execution.Runner { return l.runner }

// Environment is what the runner was made of, with what is bound late as it was when the lease was taken.
func (l *Lease) Environment() execution.Environment { return l.env }

// Identity is what the environment lets its executions have now, and not as it was when the runner was made. What is allowed no
// more must not live on in a runner that is kept claimed. nil: nothing.
func (l *Lease) Identity() *execution.IdentityGrant {
	env, err := l.s.Environment(l.life.ctx, l.runner.Key())
	if err != nil {
		return nil // it is no more
	}
	return env.Identity
}

// Holds reports whether this server still has the runner for sure: another may have taken it over from one that does not renew its leases.
func (l *Lease) Holds() bool { return l.s.holds() }

// Gone is closed when the runner ended or was released.
func (l *Lease) Gone() <-chan struct{} { return l.life.ctx.Done() }

// WhenGone calls f then, in a goroutine of its own, unless it was stopped before.
func (l *Lease) WhenGone(f func()) (stop func() bool) { return context.AfterFunc(l.life.ctx, f) }

// Workloads is the node that the runner is on. A node that came back is reached through another connection than the one
// of before.
func (l *Lease) Workloads() exchange.Workloads {
	if w, err := l.s.deps.Workloads(l.runner.NodeID); err == nil {
		return w
	}
	return l.workloads // which says that it is away
}

// GoneReason says why the runner is gone; nil while it lives. Its code is drover.Gone.
func (l *Lease) GoneReason() error {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	return l.life.reason
}

// Done gives the lease back; calling it again does nothing.
func (l *Lease) Done() {
	l.once.Do(func() { l.s.tell(func(c *Core, now time.Time) { c.Return(now, l.runner.AllocID) }) })
}

// Reach returns the node of a runner that has not ended, whichever server keeps that. Errors: Gone; Unavailable while it is away.
func (s *Service) Reach(allocID string) (exchange.Workloads, error) {
	a := s.deps.Snapshot().Allocation(allocID)
	if a == nil || a.Terminal() {
		return nil, drover.Errorf(drover.Gone, "the runner of allocation %s ended", allocID)
	}
	return s.deps.Workloads(a.NodeID)
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
func (s *Service) Runner(ctx context.Context, runnerID string) (r execution.Runner, err error) {
	if err := s.awaitSync(ctx); err != nil {
		return r, err
	}
	s.tell(func(c *Core, _ time.Time) { r, err = c.Runner(runnerID) })
	if err != nil {
		return r, s.unknown(runnerID, err)
	}
	return r, nil
}
