package settled

import (
	"fmt"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/scheduler"
	"github.com/drover-project/drover/internal/control/store"
)

// Allocations: every allocation is where it was wanted. A service's runs, a batch's has completed, a stopped one has
// ended.
func Allocations(s *store.Snapshot) string {
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

// Jobs: the scheduler, asked about every job, has nothing to do; who has not all waits in a blocked evaluation.
func Jobs(s *store.Snapshot, now time.Time) string {
	for j := range s.Jobs("*", "") {
		trigger := drover.TriggerJobRegister
		if j.Type == drover.JobTypeSystem {
			trigger = drover.TriggerDeploymentWatcher // who registers a system job starts what failed of it anew
		}
		out := scheduler.Schedule(scheduler.Input{
			Eval: &drover.Evaluation{
				ID: "probe", Namespace: j.Namespace, JobID: j.ID, Type: j.Type, Priority: j.Priority, Status: drover.EvalPending,
				TriggeredBy: trigger,
			},
			Snapshot: s, Now: now, Seed: 1,
		})
		// A deployment alone may be made anew: the last one, which failed, may have been collected.
		// Nor is a blocked evaluation woken by what it could preempt now and could not then.
		if p := out.Plan; len(p.NodeAllocation)+len(p.NodeUpdate) > 0 && len(p.NodePreemptions) == 0 {
			return fmt.Sprintf("job %s: the scheduler still has something to do: %s", j.ID, PlanText(out.Plan))
		}
		if why := counts(s, j, &out); why != "" {
			return why
		}
	}
	return ""
}

// PlanText tells in a few words what a plan would do.
func PlanText(p *drover.Plan) string {
	return fmt.Sprintf("place on %d, stop on %d, preempt on %d nodes, deployment %v", len(p.NodeAllocation), len(p.NodeUpdate),
		len(p.NodePreemptions), p.Deployment != nil || len(p.DeploymentUpdates) > 0)
}

// counts says which group of the job has too many or too few allocations; "" if none has. Too few are right only if the
// scheduler could not place them and a blocked evaluation waits to do so. Claimed runners are no part of their pool.
func counts(s *store.Snapshot, j *drover.Job, out *scheduler.Output) string {
	blocked := false
	for e := range s.EvaluationsByJob(j.Namespace, j.ID) {
		blocked = blocked || e.Status == drover.EvalBlocked
	}
	for _, g := range j.TaskGroups {
		live, rests := 0, 0
		for a := range s.AllocationsByJob(j.Namespace, j.ID) {
			if a.TaskGroup == g.Name && !a.Terminal() && (g.Pool == nil || a.Claim == nil) {
				live++
			}
			if a.TaskGroup == g.Name && a.ClientStatus == drover.AllocClientFailed && !a.ServerTerminal() && a.NextAllocation == "" {
				rests++ // its policy leaves no attempt, or its deployment failed: it keeps its place
			}
		}
		want, exact := wanted(s, j, g)
		failed := out.Eval.FailedTGAllocs[g.Name] != nil
		switch {
		case live > want:
			return fmt.Sprintf("job %s has %d allocations of %d", j.ID, live, want)
		case failed && !blocked:
			return fmt.Sprintf("job %s could not place everything, and no blocked evaluation says so", j.ID)
		case exact && live+rests < want && !failed:
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
