package sim

import (
	"fmt"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/scheduler"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/exec/environment"
	"github.com/drover-project/drover/internal/node/taskmachine"
)

// unrest says what keeps the world from being as it was asked for; "" if nothing does. It is looked at when the faults
// are over.
func (w *World) unrest() string {
	s := w.truth().Store().Snapshot()
	if why := w.serversRest(); why != "" {
		return why
	}
	for e := range s.Evaluations("*", "") {
		if e.Status == drover.EvalPending {
			return fmt.Sprintf("evaluation %s of %s (%s) is pending until %s", e.ID, e.JobID, e.TriggeredBy, e.WaitUntil)
		}
	}
	for n := range s.Nodes("") {
		if n.Status != drover.NodeStatusReady {
			return fmt.Sprintf("node %s is %s", n.Name, n.Status)
		}
	}
	for _, f := range []func(*store.Snapshot) string{w.allocsRest, w.jobsRest, w.nodesRest, w.claimsRest} {
		if why := f(s); why != "" {
			return why
		}
	}
	return ""
}

// allocsRest: every allocation is where it was wanted. A service's runs, a batch's has completed, a stopped one has
// ended.
func (w *World) allocsRest(s *store.Snapshot) string {
	for a := range s.Allocations("*", "") {
		switch {
		case a.ClientTerminal():
		case a.ServerTerminal():
			return fmt.Sprintf("allocation %s (%s) was stopped and is %s", a.ID, a.Name, a.ClientStatus)
		case a.ClientStatus != drover.AllocClientRunning:
			return fmt.Sprintf("allocation %s (%s) is %s", a.ID, a.Name, a.ClientStatus)
		case a.Job.Type == drover.JobTypeBatch || a.Job.Type == drover.JobTypeSysBatch:
			return fmt.Sprintf("allocation %s (%s) did not complete yet", a.ID, a.Name)
		}
	}
	return ""
}

// jobsRest: the scheduler, asked about every job, has nothing to do; who has not all waits in a blocked evaluation.
func (w *World) jobsRest(s *store.Snapshot) string {
	for j := range s.Jobs("*", "") {
		out := scheduler.Schedule(scheduler.Input{
			Eval: &drover.Evaluation{
				ID: "probe", Namespace: j.Namespace, JobID: j.ID, Type: j.Type, Priority: j.Priority, Status: drover.EvalPending,
				TriggeredBy: drover.TriggerJobRegister,
			},
			Snapshot: s, Now: w.now, Seed: 1,
		})
		// A deployment alone may be made anew: the last one, which failed, may have been collected.
		// Nor is a blocked evaluation woken by what it could preempt now and could not then.
		if p := out.Plan; len(p.NodeAllocation)+len(p.NodeUpdate) > 0 && len(p.NodePreemptions) == 0 {
			return fmt.Sprintf("job %s: the scheduler still has something to do: %s", j.ID, planText(out.Plan))
		}
		if why := w.counts(s, j, &out); why != "" {
			return why
		}
	}
	return ""
}

// planText tells in a few words what a plan would do.
func planText(p *drover.Plan) string {
	return fmt.Sprintf("place on %d, stop on %d, preempt on %d nodes, deployment %v", len(p.NodeAllocation), len(p.NodeUpdate),
		len(p.NodePreemptions), p.Deployment != nil || len(p.DeploymentUpdates) > 0)
}

// counts says which group of the job has too many or too few allocations; "" if none has. Too few are right only if the
// scheduler could not place them and a blocked evaluation waits to do so. Claimed runners are no part of their pool.
func (w *World) counts(s *store.Snapshot, j *drover.Job, out *scheduler.Output) string {
	blocked := false
	for e := range s.EvaluationsByJob(j.Namespace, j.ID) {
		blocked = blocked || e.Status == drover.EvalBlocked
	}
	for _, g := range j.TaskGroups {
		live := 0
		for a := range s.AllocationsByJob(j.Namespace, j.ID) {
			if a.TaskGroup == g.Name && !a.Terminal() && (g.Pool == nil || a.Claim == nil) {
				live++
			}
		}
		want, exact := wanted(s, j, g)
		failed := out.Eval.FailedTGAllocs[g.Name] != nil
		switch {
		case live > want:
			return fmt.Sprintf("job %s has %d allocations of %d", j.ID, live, want)
		case failed && !blocked:
			return fmt.Sprintf("job %s could not place everything, and no blocked evaluation says so", j.ID)
		case exact && live < want && !failed:
			return fmt.Sprintf("job %s has %d allocations of %d, and nothing is blocked", j.ID, live, want)
		}
	}
	return ""
}

// wanted returns how many allocations a group should have; exact is false where fewer are right too.
func wanted(s *store.Snapshot, j *drover.Job, g *drover.TaskGroup) (n int, exact bool) {
	switch {
	case j.Stop:
		return 0, true
	case j.Type == drover.JobTypeSystem || j.Type == drover.JobTypeSysBatch:
		for range s.Nodes("") {
			n++
		}
		return n, false
	case j.Type == drover.JobTypeBatch:
		return *g.Count, false
	case g.Pool == nil:
		for d := range s.DeploymentsByJob(j.Namespace, j.ID) {
			if d.JobVersion == j.Version && d.Status == drover.DeploymentFailed {
				return *g.Count, false // it stops where it failed
			}
		}
		return *g.Count, true
	}
	claimed := 0
	for a := range s.AllocationsByJob(j.Namespace, j.ID) {
		if !a.Terminal() && a.Claim != nil {
			claimed++
		}
	}
	n = g.Pool.Size
	if g.Pool.MaxRunners > 0 {
		n = max(0, min(n, g.Pool.MaxRunners-claimed))
	}
	return n, true
}

// nodesRest: what runs on the machines is what the state says runs there, neither more nor less.
func (w *World) nodesRest(s *store.Snapshot) string {
	for _, n := range w.nodes {
		runs := map[string]bool{}
		for _, l := range n.locals() {
			for _, t := range l.tasks {
				if x := n.runs[t.key()]; x != nil && x.exit == nil && t.status.Phase == taskmachine.Running {
					runs[l.alloc.ID] = true
				}
			}
		}
		for key, x := range n.runs {
			if x.exit == nil && !runs[key[:36]] {
				return fmt.Sprintf("on %s runs %s, which its agent does not know", n.spec.Name, key)
			}
		}
		for id := range runs {
			if a := s.Allocation(id); a == nil || a.Terminal() {
				return fmt.Sprintf("on %s runs %s, which has ended", n.spec.Name, id)
			}
		}
		for a := range s.AllocationsByNode(n.spec.ID) {
			if !a.Terminal() && !runs[a.ID] {
				return fmt.Sprintf("allocation %s should run on %s and does not", a.ID, n.spec.Name)
			}
		}
	}
	return ""
}

// claimsRest: what was handed out is recorded, or gone.
func (w *World) claimsRest(s *store.Snapshot) string {
	for id := range w.clients.handed {
		if a := s.Allocation(id); a != nil && !a.Terminal() && a.Claim == nil {
			return fmt.Sprintf("runner %s was handed out, and is warm in the state", id)
		}
	}
	for _, s := range w.servers {
		if claims, releases := s.runners.core.Unrecorded(); claims+releases > 0 {
			return fmt.Sprintf("%d claims and %d releases are not recorded at %s", claims, releases, s)
		}
	}
	for j := range s.Jobs(drover.DefaultNamespace, environment.JobPrefix) {
		if d := j.TaskGroups[0].Pool.Demand; d != 0 {
			return fmt.Sprintf("nobody waits for runners of %s, and its demand is %d", j.ID, d)
		}
	}
	return ""
}
