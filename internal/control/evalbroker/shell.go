package evalbroker

import (
	"context"
	"sync"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/wake"
)

// Shell is a Broker and a Blocked behind one mutex, with workers waiting on it. It is disabled until Enable.
type Shell struct {
	clock  clock.Clock
	room   Room
	quotas Quotas // nil: nothing waits for a quota

	mu      sync.Mutex // guards everything below
	enabled bool
	broker  *Broker
	blocked *Blocked
	waiting []*waiter

	retime wake.Signal // the earliest deadline or the freed capacity changed; wakes Run
	cancel wake.Signal // there may be evaluations to cancel
}

// errDisabled is the answer after Disable.
var errDisabled = drover.Errorf(drover.NotLeader, "evaluations are not handed out: no leadership")

// waiter is a worker without work.
type waiter struct {
	types []string
	wake  wake.Signal
}

// NewShell returns a disabled shell. room tells what is free on a node, quotas what is left of quotas; they are called by Run only.
func NewShell(cfg Config, c clock.Clock, room Room, quotas Quotas) *Shell {
	return &Shell{
		clock: c, room: room, quotas: quotas, broker: New(cfg), blocked: NewBlocked(),
		retime: wake.NewSignal(), cancel: wake.NewSignal(),
	}
}

// Enable starts taking evaluations in, after leadership was won. floor is the index of the state from which they
// are restored: blocked evaluations that are older are looked at again.
func (s *Shell) Enable(floor uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.enabled = true
	s.blocked.SetFloor(floor)
}

// Disable forgets everything: leadership was lost.
func (s *Shell) Disable() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.enabled = false
	s.broker.Flush()
	s.blocked.Flush()
}

// Enqueue takes pending evaluations in.
func (s *Shell) Enqueue(evals ...*drover.Evaluation) {
	s.enter(func(now time.Time) { s.broker.Enqueue(now, evals...) })
}

// Block takes a blocked evaluation in; see Blocked.Block.
func (s *Shell) Block(e *drover.Evaluation, ask drover.Capacity) {
	s.enter(func(time.Time) { s.blocked.Block(e, ask) })
	s.retime.Send()
}

// Ended forgets an evaluation that ended in the state.
func (s *Shell) Ended(evalID string) {
	rewake := false
	s.enter(func(time.Time) {
		s.broker.Remove(evalID)
		rewake = s.blocked.Remove(evalID)
	})
	if rewake {
		s.retime.Send()
	}
}

// Untrack forgets the blocked evaluations of a job of which everything was placed.
func (s *Shell) Untrack(job drover.NamespacedID) {
	s.enter(func(time.Time) { s.blocked.Untrack(job) })
}

// Freed records free capacity; see Blocked.Freed. It does not block.
func (s *Shell) Freed(nodeID, class string, index uint64) {
	s.mu.Lock()
	if s.enabled {
		s.blocked.Freed(nodeID, class, index)
	}
	s.mu.Unlock()
	s.retime.Send()
}

// QuotaFreed records that a quota may have room again; see Blocked.QuotaFreed. It does not block.
func (s *Shell) QuotaFreed(quota string, index uint64) {
	s.enter(func(time.Time) { s.blocked.QuotaFreed(quota, index) })
	s.retime.Send()
}

// WakeAll has every blocked evaluation looked at again.
func (s *Shell) WakeAll() {
	s.enter(func(time.Time) { s.blocked.WakeAll() })
	s.retime.Send()
}

// Ack says that an evaluation was dealt with; see Broker.Ack.
func (s *Shell) Ack(evalID, token string) error {
	return s.finish(func(now time.Time) error { return s.broker.Ack(now, evalID, token) }, evalID)
}

// Submitting says that a plan is with the planner; see Broker.Submitting.
func (s *Shell) Submitting(evalID, token string) (err error) {
	err = errDisabled
	s.enter(func(now time.Time) { err = s.broker.Submitting(now, evalID, token) })
	return err
}

// Submitted says that the planner has answered; see Broker.Submitted.
func (s *Shell) Submitted(evalID, token string) (err error) {
	err = errDisabled
	s.enter(func(now time.Time) { err = s.broker.Submitted(now, evalID, token) })
	return err
}

// Nack refuses an evaluation; see Broker.Nack.
func (s *Shell) Nack(evalID, token string) error {
	return s.finish(func(now time.Time) error { return s.broker.Nack(now, evalID, token) }, evalID)
}

// Postpone gives an evaluation back; see Broker.Postpone.
func (s *Shell) Postpone(evalID, token string, wait time.Duration) error {
	return s.finish(func(now time.Time) error { return s.broker.Postpone(now, evalID, token, wait) }, evalID)
}

func (s *Shell) finish(f func(now time.Time) error, evalID string) error {
	var err error
	rewake := false
	s.enter(func(now time.Time) {
		err = f(now)
		rewake = s.blocked.Finished(evalID)
	})
	if rewake {
		s.retime.Send()
	}
	return err
}

// Outstanding returns the token of an evaluation that is with a worker.
func (s *Shell) Outstanding(evalID string) (token string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.broker.Outstanding(evalID)
}

// TakeNeedless returns, once, the evaluations that are to be cancelled; Needless signals that there may be some.
func (s *Shell) TakeNeedless() []*drover.Evaluation {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append(s.broker.Superseded(), s.blocked.Duplicates()...)
}

// Needless is signalled when TakeNeedless may have something.
func (s *Shell) Needless() <-chan struct{} { return s.cancel.C() }

// Stats counts.
func (s *Shell) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := s.broker.Stats()
	stats.Blocked, stats.Escaped = s.blocked.Len()
	return stats
}

// enter runs f under the mutex, then wakes who has to know.
func (s *Shell) enter(f func(now time.Time)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.enabled {
		return
	}
	before, had := s.broker.Next()
	f(s.clock.Now())
	s.settle(before, had)
}

// settle tells waiting workers about ready evaluations, and Run about an earlier deadline. Called with the mutex.
func (s *Shell) settle(before time.Time, had bool) {
	if after, has := s.broker.Next(); has && (!had || after.Before(before)) {
		s.retime.Send()
	}
	if len(s.broker.superseded) > 0 || len(s.blocked.duplicates) > 0 {
		s.cancel.Send()
	}
	s.wakeWaiters()
}

// Run delivers what becomes due and wakes blocked evaluations, until ctx ends.
func (s *Shell) Run(ctx context.Context) error {
	for clock.Await(ctx, s.clock, s.untilNext(), s.retime.C()) {
		s.enter(func(now time.Time) {
			s.broker.Expire(now)
			if woken := s.blocked.Wake(s.room, s.quotas); len(woken) > 0 {
				s.broker.Enqueue(now, woken...)
			}
		})
	}
	return ctx.Err()
}

func (s *Shell) untilNext() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	next, ok := s.broker.Next()
	if !ok {
		return time.Hour
	}
	return max(0, next.Sub(s.clock.Now()))
}
