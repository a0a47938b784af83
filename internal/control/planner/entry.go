package planner

import (
	"cmp"
	"context"
	"slices"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/scheduler"
	"github.com/drover-project/drover/internal/control/trigger"
)

// add takes a checked submission into the entry, for a cluster of that version.
func (e *entry) add(s *submission, version int) {
	e.submissions = append(e.submissions, s)
	r := &s.result
	if len(r.NodeAllocation)+len(r.NodeUpdate)+len(r.NodePreemptions) > 0 || r.Deployment != nil ||
		(r.RefreshIndex == 0 && len(s.plan.DeploymentUpdates) > 0) {
		c := command.Accept(s.plan, r)
		if r.RefreshIndex != 0 && s.plan.AllAtOnce {
			c.DeploymentUpdates = nil
		}
		s.held.note(&c, s.plan.AllAtOnce, version)
		e.command.Plans = append(e.command.Plans, c)
		e.allocs += len(c.Placed) + len(c.Stopped) + len(c.Preempted)
	}
	switch {
	case r.RefreshIndex == 0:
		e.command.Evals = append(e.command.Evals, s.evals...)
	case scheduler.Progressed(r):
		e.command.Evals = append(e.command.Evals, followUps(s.evals)...)
	}
	for nodeID := range r.NodeAllocation {
		e.placed = append(e.placed, placement{s.plan.Job, nodeID})
	}
}

// followUps returns the evaluations that are looked at later: of a job that lost an allocation to another one, of an
// allocation that is unknown until then. They are committed with whatever was accepted. The next plan for the same
// evaluation finds their cause done, and would not make them again.
func followUps(evals []*drover.Evaluation) []*drover.Evaluation {
	var out []*drover.Evaluation
	for _, e := range evals {
		if e.Status == drover.EvalPending && !e.WaitUntil.IsZero() {
			out = append(out, e)
		}
	}
	return out
}

// empty reports whether there is nothing to commit: plans that were refused whole need no entry of the log.
func (e *entry) empty() bool { return len(e.command.Plans) == 0 && len(e.command.Evals) == 0 }

// overlay is what accepted plans that may not be in the state yet leave on nodes: by node, by allocation.
type overlay map[string]map[string]*drover.Allocation

// add notes what the plans of an entry place; a nil entry has none.
func (o overlay) add(e *entry) {
	if e == nil {
		return
	}
	for _, s := range e.submissions {
		o.addResult(&s.result)
	}
}

// addResult notes the accepted placements only. Stops are left out: a stopped allocation holds its place until its node
// says that it ended.
func (o overlay) addResult(r *drover.PlanResult) {
	for nodeID, list := range r.NodeAllocation {
		m := o[nodeID]
		if m == nil {
			m = make(map[string]*drover.Allocation, len(list))
			o[nodeID] = m
		}
		for _, a := range list {
			m[a.ID] = a
		}
	}
}

// recheck looks for placements on nodes that went down between the check and the commit. Whoever marked the node down did not
// see these allocations, so an evaluation is made for them here.
func (p *Planner) recheck(ctx context.Context, e *entry) {
	evals := strays(p.deps.State(), e.placed, trigger.Maker{IDs: p.deps.IDs, Now: p.deps.Clock.Now().UnixNano()})
	if len(evals) == 0 {
		return
	}
	if _, _, err := p.deps.Log.Propose(ctx, &command.UpdateEvals{Evals: evals}); err != nil {
		p.deps.Logger.Error("cannot store evaluations for placements on lost nodes", "error", err)
	}
}

// strays returns an evaluation of each job that has something placed on nodes that are gone, in the order of the nodes.
func strays(state Snapshot, placed []placement, m trigger.Maker) []*drover.Evaluation {
	seen := map[string]bool{} // node is gone
	var lost []placement
	for _, at := range placed {
		gone, known := seen[at.nodeID]
		if !known {
			n := state.Node(at.nodeID)
			gone = n == nil || n.Status == drover.NodeStatusDown || n.Status == drover.NodeStatusDisconnected
			seen[at.nodeID] = gone
		}
		if gone && at.job != nil {
			lost = append(lost, at)
		}
	}
	slices.SortStableFunc(lost, func(x, y placement) int { return cmp.Compare(x.nodeID, y.nodeID) })
	jobs := map[drover.NamespacedID]bool{}
	var evals []*drover.Evaluation
	for _, at := range lost {
		if jobs[at.job.Key()] {
			continue
		}
		jobs[at.job.Key()] = true
		e := m.Job(at.job, drover.TriggerNodeUpdate)
		e.NodeID, e.JobModifyIndex = at.nodeID, 0
		evals = append(evals, e)
	}
	return evals
}
