package sim

import (
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/evalbroker"
	"github.com/drover-project/drover/internal/control/leader"
	"github.com/drover-project/drover/internal/control/scheduler"
	"github.com/drover-project/drover/internal/control/store"
)

// This file is leader/worker.go on the simulated log.

// How often a plan is made anew because parts of it were refused.
const (
	serviceAttempts = 5
	batchAttempts   = 2
	totalAttempts   = 50
)

func (s *server) work(p *proc) {
	for {
		e, token := s.dequeue(p, drover.JobTypeService, drover.JobTypeBatch, drover.JobTypeSystem, drover.JobTypeSysBatch)
		if s.w.stuck && s.w.chance(5) {
			s.w.say("a worker is stuck with evaluation %s", short(e.ID))
			p.sleep(70 * time.Second) // longer than the nack timeout: somebody else gets it too
		}
		err := s.evaluate(p, e, token)
		s.w.say("evaluation %s of %s (%s): %v", short(e.ID), e.JobID, e.TriggeredBy, err)
		switch drover.CodeOf(err) {
		case drover.Unavailable, drover.Exhausted, drover.NotLeader:
			s.finish(e.ID, func(now time.Time) error { return s.broker.Postpone(now, e.ID, token, retryDelay) })
		default:
			if err != nil {
				s.finish(e.ID, func(now time.Time) error { return s.broker.Nack(now, e.ID, token) })
				continue
			}
			s.finish(e.ID, func(now time.Time) error { return s.broker.Ack(now, e.ID, token) })
		}
	}
}

func (s *server) evaluate(p *proc, e *drover.Evaluation, token string) error {
	least := e.ModifyIndex
	limit := serviceAttempts
	if e.Type == drover.JobTypeBatch || e.Type == drover.JobTypeSysBatch {
		limit = batchAttempts
	}
	for attempt, total := 0, 0; attempt < limit && total < totalAttempts; total++ {
		snap := s.stateAt(p, least)
		stored := snap.Evaluation(e.ID)
		if stored == nil || stored.Terminal() {
			return nil
		}
		p.sleep(s.w.between(100*time.Microsecond, 30*time.Millisecond)) // it computes: the state goes on
		out := scheduler.Schedule(scheduler.Input{
			Eval: stored, Snapshot: snap, Now: s.w.now, Seed: s.w.rng.Uint64(), Attempt: total,
		})
		if leader.StillBlocked(stored, out) {
			s.block(out.Eval)
			return nil
		}
		out.Plan.EvalToken = token
		result, err := s.submit(p, out.Plan, append(out.NewEvals, out.Eval))
		if err != nil {
			return err
		}
		if result.RefreshIndex == 0 {
			return nil
		}
		least = result.RefreshIndex
		if scheduler.Progressed(&result) {
			attempt = 0
		} else {
			attempt++
		}
	}
	_, err := s.submit(p, &drover.Plan{EvalID: e.ID, EvalToken: token, Priority: e.Priority}, leader.Refused(e, s.maker()))
	return err
}

func (s *server) stateAt(p *proc, index uint64) *store.Snapshot {
	for {
		changed := s.store.WatchAny()
		if snap := s.store.Snapshot(); snap.Index() >= index {
			return snap
		}
		p.await(time.Minute, changed)
	}
}

// reapFailed is the leader's.
func (s *server) reapFailed(p *proc) {
	for {
		e, token := s.dequeue(p, evalbroker.FailedQueue)
		s.w.say("evaluation %s of %s was delivered too often", short(e.ID), e.JobID)
		if err := s.storeEvals(leader.Undeliverable(e, s.maker())); err != nil {
			s.finish(e.ID, func(now time.Time) error { return s.broker.Postpone(now, e.ID, token, retryDelay) })
			continue
		}
		s.finish(e.ID, func(now time.Time) error { return s.broker.Ack(now, e.ID, token) })
	}
}
