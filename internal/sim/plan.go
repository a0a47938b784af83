package sim

import (
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/planner"
)

// This file is the planner's loop: plans are checked against the state and what is on its way, one entry flies at a
// time, and what came meanwhile goes together in the next one.

type planQueue struct {
	waiting []*submission
	wake    signal
}

type submission struct {
	plan   *drover.Plan
	evals  []*drover.Evaluation
	result drover.PlanResult
	err    error
	done   signal
}

func (s *server) submit(p *proc, plan *drover.Plan, evals []*drover.Evaluation) (drover.PlanResult, error) {
	x := &submission{plan: plan, evals: evals}
	s.plans.waiting = append(s.plans.waiting, x)
	s.plans.wake.raise()
	for !x.done.wait(p, time.Hour) {
	}
	return x.result, x.err
}

func (s *server) applyPlans(p *proc) {
	var next []*submission
	for {
		for len(next) == 0 {
			s.plans.wake.wait(p, time.Hour)
			next = s.gather(nil)
		}
		batch := next
		landed := &signal{}
		var err error
		var index uint64
		c := entryOf(batch, s.w.now)
		s.term.spawn("plans", func(*proc) {
			if len(c.Plans)+len(c.Evals) > 0 {
				index, _, err = s.Propose(s.w.ctx, c)
			}
			if err == nil {
				s.strays(batch)
			}
			landed.raise()
		})
		next = nil
		for !landed.raised { // meanwhile the next entry is checked against what is on its way
			p.sleep(s.w.between(100*time.Microsecond, 5*time.Millisecond))
			next = append(next, s.gather(append(results(batch), results(next)...))...)
		}
		for _, x := range batch {
			x.err = err
			x.result.AllocIndex = index
			if x.result.RefreshIndex > 0 {
				x.result.RefreshIndex = max(x.result.RefreshIndex, index)
			}
			x.done.raise()
		}
	}
}

// gather checks what waits.
func (s *server) gather(earlier []*drover.PlanResult) (out []*submission) {
	for _, x := range s.plans.waiting {
		token, ok := s.broker.Outstanding(x.plan.EvalID)
		if x.plan.EvalToken != "" && (!ok || token != x.plan.EvalToken) {
			x.err = drover.Errorf(drover.Conflict, "evaluation %s: the token is no longer valid", x.plan.EvalID)
			x.done.raise()
			continue
		}
		x.result = planner.CheckAfter(s.store.Snapshot(), earlier, x.plan)
		earlier = append(earlier, &x.result)
		out = append(out, x)
	}
	s.plans.waiting = nil
	return out
}

func results(batch []*submission) (out []*drover.PlanResult) {
	for _, x := range batch {
		out = append(out, &x.result)
	}
	return out
}

// entryOf is planner's entry.add.
func entryOf(batch []*submission, now time.Time) *command.ApplyPlans {
	c := &command.ApplyPlans{Time: now.UnixNano()}
	for _, x := range batch {
		r := &x.result
		if len(r.NodeAllocation)+len(r.NodeUpdate)+len(r.NodePreemptions) > 0 || r.Deployment != nil ||
			(r.RefreshIndex == 0 && len(x.plan.DeploymentUpdates) > 0) {
			pc := command.Accept(x.plan, r)
			if r.RefreshIndex != 0 && x.plan.AllAtOnce {
				pc.DeploymentUpdates = nil
			}
			c.Plans = append(c.Plans, pc)
		}
		if r.RefreshIndex == 0 {
			c.Evals = append(c.Evals, x.evals...)
		}
	}
	return c
}

// strays has placements on nodes that went down meanwhile looked at again.
func (s *server) strays(batch []*submission) {
	var evals []*drover.Evaluation
	seen := map[drover.NamespacedID]bool{}
	for _, x := range batch {
		if x.plan.Job == nil || seen[x.plan.Job.Key()] {
			continue
		}
		if more := planner.Strays(s.store.Snapshot(), x.plan.Job, &x.result, s.maker()); len(more) > 0 {
			seen[x.plan.Job.Key()] = true
			evals = append(evals, more...)
		}
	}
	_ = s.storeEvals(evals) // the planner only logs it too
}

func (s *server) storeEvals(evals []*drover.Evaluation) error {
	if len(evals) == 0 {
		return nil
	}
	_, _, err := s.Propose(s.w.ctx, &command.UpdateEvals{Evals: evals})
	return err
}
