package intake

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/scheduler"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/id"
)

// overlay is the state as if the job had been registered.
type overlay struct {
	*store.Snapshot
	job *drover.Job
}

// Job returns the job in question as registered, others as stored.
func (o overlay) Job(namespace, id string) *drover.Job {
	if o.job.Namespace == namespace && o.job.ID == id {
		return o.job
	}
	return o.Snapshot.Job(namespace, id)
}

// PlanJob says what registering the job would do, and changes nothing. Errors: as RegisterJob.
func (in *Intake) PlanJob(ctx context.Context, job *drover.Job, diff bool) (drover.Preview, error) {
	if job == nil {
		return drover.Preview{}, drover.Errorf(drover.Invalid, "job required for plan")
	}
	j, warnings, err := in.admit(ctx, drover.RegisterRequest{Job: job}, true)
	if err != nil {
		return drover.Preview{}, err
	}
	s := in.deps.Store.Snapshot()
	old := s.Job(j.Namespace, j.ID)
	m := in.maker()
	// These are the fields as the next entry of the log would set them.
	j.SubmitTime, j.CreateIndex, j.ModifyIndex, j.JobModifyIndex = m.Now, s.Index(), s.Index(), s.Index()+1
	p := drover.Preview{Warnings: strings.Join(warnings, "; ")}
	if old != nil {
		j.CreateIndex, j.Version, p.JobModifyIndex = old.CreateIndex, old.Version+1, old.JobModifyIndex
		if sameSpec(old, j) {
			j = old
		}
	}
	if diff {
		p.Diff = Diff(old, j)
	}
	if j.Periodical() {
		p.NextPeriodicLaunch = NextLaunch(j.Periodic, in.now())
		return p, nil
	}
	if j.Parameterized() {
		return p, nil
	}
	eval := m.Job(j, drover.TriggerJobRegister)
	// The scheduler runs as for a real evaluation, but nothing commits its plan.
	eval.AnnotatePlan, eval.SnapshotIndex = true, s.Index()
	out := scheduler.Schedule(scheduler.Input{
		Eval: eval, Snapshot: overlay{s, j}, Now: in.now(), Seed: id.Seed(eval.ID),
	})
	p.Annotations = out.Plan.Annotations
	if p.Annotations == nil {
		p.Annotations = out.Eval.PlanAnnotations
	}
	if p.Diff != nil {
		annotate(p.Diff, p.Annotations)
	}
	p.FailedTGAllocs = out.Eval.FailedTGAllocs
	p.CreatedEvals = out.NewEvals
	p.Placements = placements(s, out.Plan)
	return p, nil
}

// placements says where a plan puts what is not there yet.
func placements(s *store.Snapshot, plan *drover.Plan) []drover.PlannedPlacement {
	count := map[drover.PlannedPlacement]int{}
	for nodeID, list := range plan.NodeAllocation {
		for _, a := range list {
			if s.Allocation(a.ID) == nil { // others are updated where they are
				count[drover.PlannedPlacement{Group: a.TaskGroup, NodeID: nodeID, NodeName: a.NodeName}]++
			}
		}
	}
	out := make([]drover.PlannedPlacement, 0, len(count))
	for p, n := range count {
		p.Count = n
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b drover.PlannedPlacement) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.NodeName, b.NodeName), cmp.Compare(a.NodeID, b.NodeID))
	})
	return out
}
