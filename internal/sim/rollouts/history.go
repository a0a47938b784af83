package rollouts

import (
	"context"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/intake"
	"github.com/drover-project/drover/internal/control/scheduler"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/sim"
	"github.com/drover-project/drover/internal/sim/scenario"
	"github.com/drover-project/drover/internal/tables"
)

// Run plays a scenario to its end, or to the first promise that is not kept. write, if not nil, is given a line for each thing
// worth reading. The same scenario gives the same result.
func Run(ctx context.Context, s scenario.Scenario, write func(string)) sim.Result {
	return run(ctx, s, write, nil)
}

// run is Run, with what the scheduler is asked changed by tamper, if that is not nil.
func run(ctx context.Context, s scenario.Scenario, write func(string), tamper func(scheduler.Input) scheduler.Input) sim.Result {
	return sim.Play(ctx, s, write, &history{tamper: tamper, served: map[string]bool{}, promised: map[string]promise{}, budgets: budgets{}})
}

// history is what is remembered of a world to check it.
type history struct {
	tamper   func(scheduler.Input) scheduler.Input
	state    *store.Snapshot    // the newest
	served   map[string]bool    // allocations that were healthy once
	promised map[string]promise // by job, of its newest plan that takes something down
	budgets  budgets
}

var _ sim.Extra = (*history)(nil)

// Schedule implements sim.Extra.
func (h *history) Schedule(in scheduler.Input) (out scheduler.Output, broken string) {
	asked := in
	if h.tamper != nil {
		asked = h.tamper(in)
	}
	out = scheduler.Schedule(asked)
	return out, h.checkPlan(in, out.Plan)
}

// Applied implements sim.Extra.
func (h *history) Applied(before, after *store.Snapshot, now time.Time) (broken string) {
	h.state = after
	if before == nil || before.TableIndex(tables.Allocs) == after.TableIndex(tables.Allocs) &&
		before.TableIndex(tables.Jobs) == after.TableIndex(tables.Jobs) {
		return ""
	}
	for j := range after.Jobs("*", "") {
		if j.Type != drover.JobTypeService {
			continue
		}
		for a := range after.AllocationsByJob(j.Namespace, j.ID) {
			if a.DeploymentStatus.IsHealthy() {
				h.served[a.ID] = true
			}
		}
		if why := h.checkEntry(before, after, j); why != "" {
			return why
		}
		if why := h.checkPlacements(before, after, j, now); why != "" {
			return why
		}
	}
	return ""
}

// Step implements sim.Extra.
func (h *history) Step(ctx context.Context, in *intake.Intake, verb, name string, o scenario.Options) (drover.Outcome, error) {
	switch verb {
	case "roll":
		return in.RegisterJob(ctx, drover.RegisterRequest{Job: jobOf(name, o)})
	case "revert":
		j := h.state.Job(drover.DefaultNamespace, name)
		if j == nil || j.Version < uint64(o["back"]) {
			return drover.Outcome{}, drover.Errorf(drover.NotFound, "there is no such version")
		}
		return in.RevertJob(ctx, drover.RevertRequest{Namespace: j.Namespace, ID: name, Version: j.Version - uint64(o["back"])})
	}
	d := h.newest(name)
	if d == nil {
		return drover.Outcome{}, drover.Errorf(drover.NotFound, "no deployment")
	}
	switch verb {
	case "promote":
		return in.PromoteDeployment(ctx, d.ID, nil)
	case "fail":
		return in.FailDeployment(ctx, d.ID)
	case "hold", "resume":
		return in.PauseDeployment(ctx, d.ID, verb == "hold")
	case "say": // by hand
		healthy, unhealthy := h.unsaid(d, o["well"] > 0)
		return in.SetAllocHealth(ctx, d.ID, healthy, unhealthy)
	}
	return drover.Outcome{}, drover.Errorf(drover.Internal, "no such step: %s", verb)
}

// newest is the job's newest deployment, nil if it has none.
func (h *history) newest(job string) (newest *drover.Deployment) {
	for d := range h.state.DeploymentsByJob(drover.DefaultNamespace, job) {
		if newest == nil || d.CreateIndex > newest.CreateIndex {
			newest = d
		}
	}
	return newest
}

// unsaid is an allocation of the deployment of which nothing is said yet, in one list or the other.
func (h *history) unsaid(d *drover.Deployment, well bool) (healthy, unhealthy []string) {
	for a := range h.state.AllocationsByJob(d.Namespace, d.JobID) {
		if a.DeploymentID != d.ID || a.Terminal() || a.DeploymentStatus.Judged() {
			continue
		}
		if well {
			return []string{a.ID}, nil
		}
		return nil, []string{a.ID}
	}
	return nil, nil
}

// Decide implements sim.Extra: what was paused goes on, canaries that are well are promoted, and what cannot be promoted any more has
// failed.
func (h *history) Decide(ctx context.Context, in *intake.Intake) {
	var active []*drover.Deployment
	for d := range h.state.Deployments("*", "") {
		if d.Active() {
			active = append(active, d)
		}
	}
	for _, d := range active { // what is refused is asked again, or was decided meanwhile
		switch {
		case d.Status == drover.DeploymentPaused:
			_, _ = in.PauseDeployment(ctx, d.ID, false)
		case waitsForPerson(d):
			if _, err := in.PromoteDeployment(ctx, d.ID, nil); err != nil {
				_, _ = in.FailDeployment(ctx, d.ID)
			}
		}
	}
}

// waitsForPerson reports whether nothing is missing but a promotion.
func waitsForPerson(d *drover.Deployment) bool {
	waits := false
	for _, s := range d.TaskGroups {
		waits = waits || s.Unpromoted()
		if s.Waiting() {
			return false
		}
	}
	return waits
}
