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

// Use is UseNow for work that can wait some seconds for the runner's node.
func (s *Service) Use(ctx context.Context, runnerID string) (*Use, error) {
	l, err := s.UseNow(ctx, runnerID)
	if drover.CodeOf(err) != drover.Unavailable {
		return l, err
	}
	limit := s.deps.Clock.Now().Add(reachFor)
	for drover.CodeOf(err) == drover.Unavailable && s.deps.Clock.Now().Before(limit) && clock.Sleep(ctx, s.deps.Clock, reachEvery) {
		l, err = s.UseNow(ctx, runnerID)
	}
	return l, err
}

// UseNow takes a claimed runner into use: its idle timer stands still until the use is given back. Errors:
// NotFound, Gone, Unavailable.
func (s *Service) UseNow(ctx context.Context, runnerID string) (l *Use, err error) {
	if err := s.awaitSync(ctx); err != nil {
		return nil, err
	}
	s.tell(func(c *Core, now time.Time) { l, err = s.useLocked(c, now, runnerID) })
	if err != nil {
		return nil, s.unknown(runnerID, err)
	}
	return l, nil
}

// useLocked makes a use, if the runner's node can be reached. It is called by an event.
func (s *Service) useLocked(c *Core, now time.Time, runnerID string) (*Use, error) {
	r, err := c.Runner(runnerID)
	if err != nil {
		return nil, err
	}
	l := &Use{s: s}
	if l.workloads, err = s.deps.Workloads(r.NodeID); err != nil {
		return nil, err
	}
	if l.runner, l.env, err = c.Use(now, runnerID); err != nil {
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

// Use is a claimed runner in use. While it is held the runner's idle timer stands still.
type Use struct {
	s         *Service
	life      *life
	runner    execution.Runner
	env       execution.Environment
	workloads exchange.Workloads
	once      sync.Once
}

// Runner is the runner as it was when the use began.
func (u *Use) Runner() execution.Runner { return u.runner }

// Environment is what the runner was made of, with what is bound late as it was when the use began.
func (u *Use) Environment() execution.Environment { return u.env }

// Identity is what the environment lets its executions have now, and not as it was when the runner was made. What is allowed no
// more must not live on in a runner that is kept claimed. nil: nothing.
func (u *Use) Identity() *execution.IdentityGrant {
	env, err := u.s.Environment(u.life.ctx, u.runner.Key())
	if err != nil {
		return nil // it is no more
	}
	return env.Identity
}

// Holds reports whether this server still has the runner for sure: another may have taken it over from one that does not renew its
// leases.
func (u *Use) Holds() bool { return u.s.holds() }

// Gone is closed when the runner ended or was released.
func (u *Use) Gone() <-chan struct{} { return u.life.ctx.Done() }

// WhenGone calls f then, in a goroutine of its own, unless it was stopped before.
func (u *Use) WhenGone(f func()) (stop func() bool) { return context.AfterFunc(u.life.ctx, f) }

// Workloads is the node that the runner is on. A node that came back is reached through another connection than the one
// of before.
func (u *Use) Workloads() exchange.Workloads {
	if w, err := u.s.deps.Workloads(u.runner.NodeID); err == nil {
		return w
	}
	return u.workloads // which says that it is away
}

// GoneReason says why the runner is gone; nil while it lives. Its code is drover.Gone.
func (u *Use) GoneReason() error {
	u.s.mu.Lock()
	defer u.s.mu.Unlock()
	return u.life.reason
}

// Done gives the use back; calling it again does nothing.
func (u *Use) Done() {
	u.once.Do(func() { u.s.tell(func(c *Core, now time.Time) { c.Return(now, u.runner.AllocID) }) })
}

// Reach returns the node of a runner that has not ended, whichever server keeps that. Errors: Gone; Unavailable while it is away.
func (s *Service) Reach(allocID string) (exchange.Workloads, error) {
	a := s.deps.Snapshot().Allocation(allocID)
	if a == nil || a.Terminal() {
		return nil, drover.Errorf(drover.Gone, "the runner of allocation %s ended", allocID)
	}
	return s.deps.Workloads(a.NodeID)
}

// Files returns the files of a claimed runner; done must be called when the work on them ended. Errors: as Use.
func (s *Service) Files(ctx context.Context, runnerID string) (files execution.Files, done func(), err error) {
	use, err := s.Use(ctx, runnerID)
	if err != nil {
		return nil, nil, err
	}
	files = use.Workloads().Files(use.Runner().AllocID, environment.TaskName)
	return usedFiles{environment.Files(use.Environment(), files), use}, use.Done, nil
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
