package rollouts

import (
	"fmt"
	"iter"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/scheduler"
	"github.com/drover-project/drover/internal/control/scheduler/draft"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/optional"
)

// promise is what a plan leaves of a job's groups, and what it may not leave less than.
type promise struct {
	floor map[string]int             // by group
	serve map[string]map[string]bool // by group: the allocations that served when the plan was made, and that it leaves
}

// checkPlan: what a plan takes down to update it leaves as much as the strategy promises, canaries come first, and there is no
// more than wanted afterwards.
func (h *history) checkPlan(in scheduler.Input, p *drover.Plan) (broken string) {
	j := in.Snapshot.Job(in.Eval.Namespace, in.Eval.JobID)
	if j.Stopped() || j.Type != drover.JobTypeService {
		return ""
	}
	if a := revived(in.Snapshot, j, p); a != "" {
		return fmt.Sprintf("%s is placed, of a version whose deployment failed", a)
	}
	stopped := stoppedBy(p)
	kept := promise{floor: map[string]int{}, serve: map[string]map[string]bool{}}
	for _, g := range j.TaskGroups {
		v := h.look(in, j, g, stopped, p)
		if why := v.excess(); why != "" {
			return why
		}
		if g.Update == nil || optional.Value(g.Update.MaxParallel) == 0 || v.taken <= v.mistaken() {
			continue
		}
		floor := *g.Count - *g.Update.MaxParallel - v.late - v.mistaken()
		if left := len(v.names); left < floor {
			return fmt.Sprintf("%s is left with %d allocations that serve, of %d, having %d before; max_parallel is %d, and %d failed late", g.Name,
				left, *g.Count, left+v.taken, *g.Update.MaxParallel, v.late)
		}
		if v.updated > 0 && g.Update.Canary > 0 && !v.proven {
			return fmt.Sprintf("%s is updated before its canaries were promoted", g.Name)
		}
		kept.floor[g.Name], kept.serve[g.Name] = floor, v.left
	}
	h.promised[j.ID] = kept
	return ""
}

// revived names an allocation that a plan makes of the job's version although a deployment of that failed and none succeeded; "" if there
// is none. What replaces its own that was lost, moved or stopped is none, nor is what does the same work as an earlier version.
func revived(s scheduler.Snapshot, j *drover.Job, p *drover.Plan) string {
	failed := map[string]bool{}
	for d := range s.DeploymentsByJob(j.Namespace, j.ID) {
		if d.JobVersion != j.Version || d.JobCreateIndex != j.CreateIndex {
			continue
		}
		if d.Status == drover.DeploymentSuccessful {
			return ""
		}
		if d.Status == drover.DeploymentFailed {
			failed[d.ID] = true
		}
	}
	before := map[string]*drover.Allocation{}
	for a := range s.AllocationsByJob(j.Namespace, j.ID) {
		before[a.ID] = a
	}
	for _, node := range p.NodeAllocation {
		for _, a := range node {
			if len(failed) == 0 || a.CreateIndex > 0 || a.Version() != j.Version {
				continue
			}
			p := before[a.PreviousAllocation]
			own := p != nil && p.Version() == j.Version && p.Job.CreateIndex == j.CreateIndex
			if own && p.ClientStatus == drover.AllocClientFailed && failed[p.DeploymentID] || !own && !earlier(s, j, a) {
				return a.Name
			}
		}
	}
	return ""
}

// earlier reports whether an earlier version of the job did the same work as the allocation.
func earlier(s scheduler.Snapshot, j *drover.Job, a *drover.Allocation) bool {
	for _, v := range s.JobVersions(j.Namespace, j.ID) {
		if v.Version < j.Version && v.CreateIndex == j.CreateIndex && workOf(v, a.TaskGroup) == work(a) {
			return true
		}
	}
	return false
}

// stoppedBy lists what a plan stops, and why.
func stoppedBy(p *drover.Plan) map[string]string {
	out := map[string]string{}
	for _, node := range p.NodeUpdate {
		for _, a := range node {
			if a.ServerTerminal() {
				out[a.ID] = a.DesiredDescription
			}
		}
	}
	for _, node := range p.NodePreemptions {
		for _, a := range node {
			out[a.ID] = "evicted"
		}
	}
	return out
}

// view is a group as a plan finds and leaves it.
type view struct {
	group    *drover.TaskGroup
	left     map[string]bool // the allocations that serve afterwards too
	names    map[string]bool // theirs: of two with one name, which a promotion leaves, one is to go
	taken    int             // names that served, are served no more because of the job, and are not those of what failed late
	updated  int             // of them, those that a new version takes the place of
	late     int             // wanted, and nothing waits for them: they failed or restart after they had been healthy, or for good
	live     int             // afterwards, but for canaries
	canaries int             // that wait for promotion, afterwards
	wanted   int             // of them
	proven   bool            // its canaries were promoted

	// Of what runs and nobody judged since it joined its deployment (an update in place): what had been healthy before and is stopped
	// because of the job, and what never was and stays. The scheduler sees no difference between them.
	forgotten, unknown int
}

// look compares the state that a plan was made of with what it leaves.
func (h *history) look(in scheduler.Input, j *drover.Job, g *drover.TaskGroup, stopped map[string]string, p *drover.Plan) *view {
	v := &view{group: g, left: map[string]bool{}, names: map[string]bool{}}
	taken, late := map[string]bool{}, map[string]bool{}
	d := deploymentOf(in.Snapshot, j, p)
	if s := stateOf(d, g.Name); s != nil {
		v.proven = s.Promoted
		if !s.Promoted {
			v.wanted = min(s.DesiredCanaries, g.Update.Canary)
		}
	}
	for a := range in.Snapshot.AllocationsByJob(j.Namespace, j.ID) {
		if a.TaskGroup == g.Name {
			why := stopped[a.ID]
			v.add(canary(in.Snapshot, a), why == "" && !a.Terminal())
			if why == "" && !a.ServerTerminal() && !canary(in.Snapshot, a) && excused(a, d) {
				v.late++
				late[a.Name] = true
			}
			if canary(in.Snapshot, a) {
				continue
			}
			v.confuse(a, why, h.served[a.ID])
			if h.serves(a) {
				v.serve(a, why, taken)
			}
		}
	}
	for name := range taken {
		if !v.names[name] && !late[name] { // a promoted canary that restarts has the name of what it takes the place of
			v.taken++
		}
	}
	for _, node := range p.NodeAllocation {
		for _, a := range node {
			v.add(canary(in.Snapshot, a), a.TaskGroup == g.Name && a.CreateIndex == 0) // else it is updated in place
		}
	}
	return v
}

// confuse counts an allocation that the scheduler may take for another.
func (v *view) confuse(a *drover.Allocation, why string, served bool) {
	switch {
	case a.Terminal() || a.ClientStatus != drover.AllocClientRunning || a.DeploymentID == "" || a.DeploymentStatus.Judged():
	case served && (why == draft.WhyNotNeeded || why == draft.WhyUpdating):
		v.forgotten++
	case !served && why == "":
		v.unknown++
	}
}

// mistaken counts what is stopped in place of what never was healthy.
func (v *view) mistaken() int { return min(v.forgotten, v.unknown) }

// add counts an allocation that is wanted.
func (v *view) add(canary, wanted bool) {
	switch {
	case !wanted:
	case canary:
		v.canaries++
	default:
		v.live++
	}
}

// serve notes what becomes of an allocation that serves: why it is stopped, "" if it is not. What somebody drains or stopped by hand is
// not taken by us.
func (v *view) serve(a *drover.Allocation, why string, taken map[string]bool) {
	switch {
	case why == "":
		v.left[a.ID], v.names[a.Name] = true, true
	case optional.Value(a.DesiredTransition.Migrate):
	case why == draft.WhyUpdating:
		taken[a.Name] = true
		v.updated++
	case why == draft.WhyNotNeeded:
		taken[a.Name] = true
	}
}

// excused reports whether nothing waits for the allocation: it failed or restarts after it had been healthy in the roll-out, or failed
// for good.
func excused(a *drover.Allocation, d *drover.Deployment) bool {
	return d != nil && a.DeploymentID == d.ID && a.ClientStatus != drover.AllocClientRunning && a.DeploymentStatus.IsHealthy() ||
		a.ClientStatus == drover.AllocClientFailed && a.NextAllocation == "" && spent(a)
}

// spent reports whether the policy leaves a failed allocation no further attempt.
func spent(a *drover.Allocation) bool {
	p := a.Job.Group(a.TaskGroup).ReschedulePolicy
	tried := 0
	if a.RescheduleTracker != nil {
		tried = len(a.RescheduleTracker.Events)
	}
	return p != nil && !optional.Value(p.Unlimited) && tried >= optional.Value(p.Attempts)
}

// excess says how there is more than was wanted.
func (v *view) excess() string {
	if v.live > *v.group.Count {
		return fmt.Sprintf("%s has %d allocations of %d", v.group.Name, v.live, *v.group.Count)
	}
	if v.canaries > v.wanted {
		return fmt.Sprintf("%s has %d canaries of %d", v.group.Name, v.canaries, v.wanted)
	}
	return ""
}

// deploymentOf is the deployment of the job's version that is under way with the plan, nil if none is.
func deploymentOf(s scheduler.Snapshot, j *drover.Job, p *drover.Plan) (active *drover.Deployment) {
	if p.Deployment != nil && p.Deployment.CreateIndex == 0 {
		return p.Deployment
	}
	for d := range s.DeploymentsByJob(j.Namespace, j.ID) {
		if d.Active() && d.JobVersion == j.Version && d.JobCreateIndex == j.CreateIndex {
			active = d
		}
	}
	return active
}

// stateOf is the group's state in a deployment, nil if it is in none.
func stateOf(d *drover.Deployment, group string) *drover.DeploymentState {
	if d == nil {
		return nil
	}
	return d.TaskGroups[group]
}

// canary reports whether the allocation was made as a canary and is none of the ordinary ones yet. A plan that was made before the
// promotion and committed after it makes such as keep the mark; they count as ordinary ones.
func canary(s deployments, a *drover.Allocation) bool {
	if a.DeploymentStatus == nil || !a.DeploymentStatus.Canary {
		return false
	}
	for d := range s.DeploymentsByJob(a.Namespace, a.JobID) {
		if g := d.TaskGroups[a.TaskGroup]; d.ID == a.DeploymentID && g != nil {
			return !g.Promoted
		}
	}
	return true
}

// deployments is a state's.
type deployments interface {
	DeploymentsByJob(namespace, id string) iter.Seq[*drover.Deployment]
}

// serves reports whether the allocation runs and was found healthy, in this deployment or, before it was updated in place, in
// another one. What belongs to no deployment serves when it runs.
func (h *history) serves(a *drover.Allocation) bool {
	return !a.Terminal() && a.ClientStatus == drover.AllocClientRunning && !a.DeploymentStatus.IsUnhealthy() &&
		(a.DeploymentID == "" || a.DeploymentStatus.IsHealthy() || h.served[a.ID])
}

// checkEntry: what is committed keeps what its plan promised. What failed or was lost since the plan was made is excused; what another
// plan of ours took down is not.
func (h *history) checkEntry(before, after *store.Snapshot, j *drover.Job) (broken string) {
	kept := h.promised[j.ID]
	if len(kept.floor) == 0 {
		return ""
	}
	left, updated := map[string]map[string]bool{}, map[string]bool{}
	for a := range after.AllocationsByJob(j.Namespace, j.ID) {
		old := before.Allocation(a.ID)
		if old != nil && !old.ServerTerminal() && a.DesiredDescription == draft.WhyUpdating && h.serves(old) && !canary(before, old) {
			updated[a.TaskGroup] = true
		}
		if left[a.TaskGroup] == nil {
			left[a.TaskGroup] = map[string]bool{}
		}
		if !a.ServerTerminal() && (kept.serve[a.TaskGroup][a.ID] || h.serves(a) && !canary(after, a)) {
			left[a.TaskGroup][a.Name] = true
		}
	}
	for group, floor := range kept.floor {
		if updated[group] && len(left[group]) < floor {
			return fmt.Sprintf("job %s: %s is left with %d allocations that serve, and %d were promised", j.ID, group, len(left[group]), floor)
		}
	}
	return ""
}
