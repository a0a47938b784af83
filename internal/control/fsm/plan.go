package fsm

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/trigger"
)

// applyPlans commits the plans of one entry in order. The planner has checked them against the state and against each
// other, so no plan is refused here; checkCapacity only reports a breach.
func (e *entry) applyPlans(c *command.ApplyPlans) {
	for i := range c.Plans {
		e.applyPlan(&c.Plans[i], c.Time)
	}
	e.putEvals(c.Evals)
}

// applyPlan commits one plan: deployments first, because placements are counted in them, then stops and preemptions,
// then placements. Rows that have vanished since the plan was made are skipped, and so is what would stop a runner that may have been
// handed out.
func (e *entry) applyPlan(p *command.PlanCommit, now int64) {
	p = e.spareRunners(p, now)
	if p.Deployment != nil {
		e.planDeployment(p.Deployment, now)
	}
	for _, u := range p.DeploymentUpdates {
		if d := e.txn.Deployment(u.DeploymentID); d != nil && d.Active() {
			e.changeDeployment(d, u, now)
		}
	}
	for i := range p.Stopped {
		e.stopByPlan(&p.Stopped[i], now)
	}
	for _, x := range p.Preempted {
		e.preempt(x, now)
	}
	job := e.planJob(p.Job)
	shared := map[string]*drover.Allocation{}
	for _, a := range p.Placed {
		share(shared, a)
		if n := e.txn.Node(a.NodeID); n != nil {
			sameTexts(a, n)
		}
		if older := p.Older[a.ID]; older != nil {
			e.place(a, e.planJob(older), now)
		} else {
			e.place(a, job, now)
		}
	}
	e.checkCapacity(p.Placed)
	e.putEvals(p.FollowUps)
}

// spareRunners returns what is left of a plan without the nodes on which it would stop a warm runner that may have been handed out since
// it was made. The planner has asked the incarnations that there were to withhold what it stops. One that began since can be leased a
// runner that was still starting, and hands it out at once.
func (e *entry) spareRunners(p *command.PlanCommit, now int64) *command.PlanCommit {
	spared := map[string]string{} // and its node
	for _, id := range p.Warm {
		if a := e.txn.Allocation(id); a != nil && !a.Terminal() && e.mayBeHandedOut(a, p.Withheld) {
			spared[id] = a.NodeID
		}
	}
	if len(spared) == 0 {
		return p
	}
	if p.Job != nil {
		e.refill([]drover.NamespacedID{p.Job.Key()}, nil, now)
	} else {
		e.stopRest(p.Warm, spared, now)
	}
	return p.Sparing(spared, e.txn.Allocation)
}

// stopRest has the jobs of spared runners looked at again that are not there any more: nothing else would ever stop what is left of them.
func (e *entry) stopRest(warm []string, spared map[string]string, now int64) {
	for _, id := range warm { // whose order is the plan's
		a := e.txn.Allocation(id)
		if _, ok := spared[id]; !ok || a.Job == nil {
			continue
		}
		maker := trigger.Maker{IDs: derived(fmt.Sprintf("rest %d %s/%s", e.index, a.Namespace, a.JobID)), Now: now}
		e.putEval(*maker.Job(a.Job, drover.TriggerAllocStop))
	}
}

// mayBeHandedOut reports whether a runner was handed out, or may be by a live incarnation that does not withhold it.
func (e *entry) mayBeHandedOut(a *drover.Allocation, withheld []uint64) bool {
	return a.Claim != nil || e.txn.Lessee(a.Lease) != nil && !slices.Contains(withheld, a.Lease)
}

// sameTexts takes an allocation's texts from its stored node where they are equal, so that all allocations of a node share them.
func sameTexts(a *drover.Allocation, n *drover.Node) {
	a.NodeID = n.ID
	if a.NodeName == n.Name {
		a.NodeName = n.Name
	}
	m := a.Metrics
	if m == nil {
		return
	}
	if m.NodePool == n.NodePool {
		m.NodePool = n.NodePool
	}
	for _, s := range m.ScoreMetaData {
		if s != nil && s.NodeID == n.ID {
			s.NodeID = n.ID
		}
	}
}

// planJob returns the store's own copy of the plan's job, so that all allocations of a version share one.
func (e *entry) planJob(j *drover.Job) *drover.Job {
	if j == nil {
		return nil
	}
	if v := e.txn.JobVersion(j.Namespace, j.ID, j.Version); v != nil && v.CreateIndex == j.CreateIndex {
		return v
	}
	return j
}

// share makes allocations of one plan and group point to the same resources and metrics, if they are equal.
func share(seen map[string]*drover.Allocation, a *drover.Allocation) {
	first := seen[a.TaskGroup]
	if first == nil {
		seen[a.TaskGroup] = a
		return
	}
	if first.AllocatedResources != a.AllocatedResources && reflect.DeepEqual(first.AllocatedResources, a.AllocatedResources) {
		a.AllocatedResources = first.AllocatedResources
	}
	if first.Metrics != a.Metrics && reflect.DeepEqual(first.Metrics, a.Metrics) {
		a.Metrics = first.Metrics
	}
}

// place stores a new allocation or an in-place update. The job is attached here: a plan carries it once for all its
// allocations. Fields of the placement win only over what neither the node nor a claimer has said.
func (e *entry) place(placed *drover.Allocation, job *drover.Job, now int64) {
	a := *placed
	a.Job = job
	a.ModifyIndex, a.AllocModifyIndex, a.ModifyTime = e.index, e.index, now
	if a.DesiredStatus == "" {
		a.DesiredStatus = drover.AllocDesiredRun
	}
	old := e.txn.Allocation(a.ID)
	if old != nil {
		if old.ServerTerminal() {
			return // stopped since the plan was made: it does not come back
		}
		checkStays(old, &a)
		keepObserved(&a, old)
		if cluster.VersionOf(e.txn.Cluster()) >= keepsOrder {
			a.Reported = old.Reported
		}
	} else {
		a.CreateIndex = e.index
		if a.CreateTime == 0 {
			a.CreateTime = now
		}
		if a.ClientStatus == "" {
			a.ClientStatus = drover.AllocClientPending
		}
		if cluster.VersionOf(e.txn.Cluster()) >= promotesLate {
			e.promoteLate(&a)
		}
		e.linkPrevious(&a)
		e.claimVolumes(&a)
	}
	e.putAlloc(old, &a)
	e.countInDeployment(old, &a)
}

// keepsOrder is the cluster version from which on the order of the newest report outlives an update in place: what the state machine does
// must be the same at all servers.
const keepsOrder = 3

// promotesLate is the cluster version from which on a canary that is placed after its group's promotion is none.
const promotesLate = 3

// promoteLate makes a canary an ordinary allocation whose group was promoted since the plan was made. Nobody would promote it any
// more, and its services would keep the tags of canaries.
func (e *entry) promoteLate(a *drover.Allocation) {
	if a.DeploymentStatus == nil || !a.DeploymentStatus.Canary {
		return
	}
	if d := e.txn.Deployment(a.DeploymentID); d != nil && d.TaskGroups[a.TaskGroup] != nil && d.TaskGroups[a.TaskGroup].Promoted {
		s := *a.DeploymentStatus
		s.Canary = false
		a.DeploymentStatus = &s
	}
}

// keepObserved keeps what the node and the claimers said of an allocation that is updated in place.
func keepObserved(a, old *drover.Allocation) {
	unknown := a.ClientStatus == drover.AllocClientUnknown && !old.ClientTerminal()
	a.CreateIndex, a.CreateTime = old.CreateIndex, old.CreateTime
	a.ClientStatus, a.ClientDescription, a.TaskStates = old.ClientStatus, old.ClientDescription, old.TaskStates
	a.UnknownSince = old.UnknownSince
	a.NetworkStatus, a.NextAllocation, a.FailingServices = old.NetworkStatus, old.NextAllocation, old.FailingServices
	a.Claim, a.Lease = old.Claim, old.Lease
	a.DesiredTransition = old.DesiredTransition
	if unknown {
		a.ClientStatus = drover.AllocClientUnknown
	}
	if a.DeploymentID == old.DeploymentID {
		a.DeploymentStatus = old.DeploymentStatus
	}
	if a.Job == nil {
		a.Job = old.Job
	}
}

// linkPrevious writes the replacement's id into the allocation that it replaces. AllocModifyIndex stays, because the
// old allocation's node does nothing about it.
func (e *entry) linkPrevious(a *drover.Allocation) {
	prev := e.txn.Allocation(a.PreviousAllocation)
	if a.PreviousAllocation == "" || prev == nil || prev.NextAllocation == a.ID {
		return
	}
	next := *prev
	next.NextAllocation, next.ModifyIndex = a.ID, e.index
	e.putAlloc(prev, &next)
}

// stopByPlan stops an allocation, or marks one whose node is unreachable: lost, or unknown while it may still return. A
// client status that is final stays. UnknownSince starts the time that the disconnect block allows.
func (e *entry) stopByPlan(s *command.StoppedAlloc, now int64) {
	old := e.txn.Allocation(s.ID)
	if old == nil {
		return
	}
	a := *old
	a.DesiredStatus, a.DesiredDescription = drover.AllocDesiredStop, s.Description
	if s.DesiredStatus == drover.AllocDesiredRun && !old.ServerTerminal() {
		a.DesiredStatus = drover.AllocDesiredRun
	}
	if s.ClientStatus != "" && !old.ClientTerminal() {
		a.ClientStatus, a.UnknownSince = s.ClientStatus, 0
		if s.ClientStatus == drover.AllocClientUnknown {
			a.UnknownSince = now
		}
	}
	if s.FollowupEvalID != "" {
		a.FollowupEvalID = s.FollowupEvalID
	}
	if s.RescheduleTracker != nil {
		a.RescheduleTracker = s.RescheduleTracker
	}
	a.ModifyIndex, a.AllocModifyIndex, a.ModifyTime = e.index, e.index, now
	e.putAlloc(old, &a)
}

// preempt evicts an allocation, or names to one that was evicted before what took its place.
func (e *entry) preempt(p command.PreemptedAlloc, now int64) {
	old := e.txn.Allocation(p.ID)
	if old == nil {
		return
	}
	names := old.DesiredStatus == drover.AllocDesiredEvict && old.PreemptedByAllocation == "" && p.By != ""
	if old.ServerTerminal() && !names {
		return
	}
	a := *old
	a.DesiredStatus = drover.AllocDesiredEvict
	if a.DesiredDescription = p.Description; a.DesiredDescription == "" {
		a.DesiredDescription = "Preempted by alloc ID " + p.By
	}
	a.PreemptedByAllocation = p.By
	a.ModifyIndex, a.AllocModifyIndex, a.ModifyTime = e.index, e.index, now
	e.putAlloc(old, &a)
}
