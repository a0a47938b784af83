package reconcile

import (
	"maps"
	"math"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/scheduler/draft"
	"github.com/drover-project/drover/internal/optional"
)

// rollOut is how far the current version of a system job's group has come.
type rollOut struct {
	total       int   // nodes that should have the group, and can
	roomless    int   // nodes that should, have none of it, and no room either
	pending     int   // of total: placed or awaited, and not known to be healthy yet
	canaries    int   // of the deployment, alive or failed
	unhealthy   bool  // one of the deployment is
	unproven    int   // updates that wait for canaries to be promoted
	destructive []int // nodes, by number, whose allocation has to be replaced
}

// rollsSystem reports whether changes of the group are rolled out by deployment, as health allows.
func (r *Reconciler) rollsSystem(g *drover.TaskGroup) bool {
	return r.Job.Type == drover.JobTypeSystem && g.Update != nil && optional.Value(g.Update.MaxParallel) > 0
}

// begin starts a deployment when a version comes to run, with canaries if it replaces what runs. The canary of a system
// job is the percentage of its nodes that get the version first.
func (s *systemRun) begin(allocs []*drover.Allocation) {
	g := s.group
	if !s.rollsSystem(g) {
		return
	}
	ran, changes, replaces := false, false, false
	for _, a := range allocs {
		ran = ran || !s.older(a)
	}
	for i := range s.sites.Len() {
		if n := s.states[s.sites.NodeID(i)]; n != nil && n.live != nil {
			kind := s.updateOf(n.live, g)
			changes, replaces = changes || kind != updateNone, replaces || kind == updateDestructive
		}
	}
	if !ran || changes {
		canaries := 0
		if replaces {
			canaries = canariesOf(g.Update.Canary, s.sites.Len())
		}
		s.deployments.begin(s.Reconciler, g, g.DesiredCount(), canaries, false) // the total follows (resize)
	}
	s.survey()
}

// canariesOf returns how many of the nodes percent are, rounded up.
func canariesOf(percent, nodes int) int {
	return (min(percent, 100)*nodes + 99) / 100
}

// survey looks at what the deployment has placed before. A canary that failed counts: it fails the deployment, and is not
// made up for on another node.
func (s *systemRun) survey() {
	id := s.deployments.id()
	if id == "" {
		return
	}
	for _, n := range s.states {
		a := n.live
		if a == nil && n.previous != nil && endedItself(n.previous) {
			a = n.previous
		}
		if a == nil || a.DeploymentID != id {
			continue
		}
		if d := a.DeploymentStatus; d != nil && d.Canary {
			s.out.canaries++
		}
		s.out.unhealthy = s.out.unhealthy || a.DeploymentStatus.IsUnhealthy() || a != n.live // what failed will be judged
	}
}

// see takes note of a node's live allocation, and updates it in place if that is enough.
func (s *systemRun) see(i int, a *drover.Allocation) {
	switch s.updateOf(a, s.group) {
	case updateNone:
		s.u.Ignore++
		if s.settling(a) {
			s.out.pending++
		}
	case updateInPlace:
		s.u.InPlaceUpdate++
		n := s.ChangeInPlace(a)
		if s.deployments.state(s.group.Name) != nil {
			n.DeploymentID, n.DeploymentStatus = s.deployments.id(), nil
			s.out.pending++
		}
	case updateDestructive:
		s.out.destructive = append(s.out.destructive, i)
	}
}

// settling reports whether an allocation of the job's version has still to show that it is well. It shows that by its health in
// the deployment, or where none is under way by running for as long as health would take.
func (s *systemRun) settling(a *drover.Allocation) bool {
	if id := s.deployments.id(); id != "" {
		return a.DeploymentID == id && !a.DeploymentStatus.Judged()
	}
	return a.ClientStatus == drover.AllocClientPending || time.Unix(0, a.CreateTime).Add(s.settleTime()).After(s.Now)
}

// settleTime is min_healthy_time, at least a second.
func (s *systemRun) settleTime() time.Duration {
	if s.group.Update == nil {
		return time.Second
	}
	return max(optional.Value(s.group.Update.MinHealthyTime), time.Second)
}

// fillRule says with which version a node without an allocation is filled, if at all.
type fillRule uint8

const (
	fillNot fillRule = iota
	fillPlain
	fillCanary
	fillServing
)

// mayFill says what a node without an allocation gets now. While canaries have to prove the version, or since it failed,
// that is what serves meanwhile, if there is such a version; the failed one only where somebody asks for it. It gets
// nothing while the roll-out is paused.
func (s *systemRun) mayFill(nodeID string, serving *drover.Job) fillRule {
	state := s.deployments.state(s.group.Name)
	switch {
	case state.Unpromoted() && s.out.canaries < state.DesiredCanaries && !s.deployments.halted():
		return fillCanary
	case serving != nil:
		return fillServing
	case state.Unpromoted():
		return fillNot
	case s.deployments.halted():
		d := s.deployments.current
		if d.Status == drover.DeploymentPaused || d.TaskGroups[s.group.Name].Unpromoted() || !s.asked(nodeID) {
			return fillNot
		}
	}
	return fillPlain
}

// roll replaces what runs by the job's version, as far as health allows.
func (s *systemRun) roll() {
	g := s.group
	state := s.deployments.state(g.Name)
	limit := s.limit(state)
	if len(s.out.destructive)+s.out.pending > 0 {
		s.deployments.busy = true
	}
	waits := 0
	for _, i := range s.out.destructive {
		canary := state.Unpromoted()
		switch {
		case canary && (s.out.canaries >= state.DesiredCanaries || limit == 0):
			s.out.unproven++
			s.u.Ignore++
			continue
		case limit == 0:
			s.u.Ignore++
			waits++
			continue
		case canary:
			s.out.canaries++
			s.u.Canary++
		}
		limit--
		s.u.DestructiveUpdate++
		a := s.states[s.sites.NodeID(i)].live
		p := Placement{Name: a.Name, Previous: a, Fresh: true, Canary: canary}
		if s.sites.Place(i, p) || s.sites.FitsInstead(a) {
			s.End(a, draft.WhyUpdating)
		}
	}
	if waits > 0 && state == nil && !s.deployments.halted() {
		// Nodes came back with an older version after the roll-out was over: no health tells when to go on.
		s.Wake(s.Now.Add(s.settleTime()), drover.TriggerRollingUpdate, "continues a rolling update")
	}
}

// limit returns how many allocations may be replaced now: max_parallel, less those not known to be healthy.
func (s *systemRun) limit(state *drover.DeploymentState) int {
	switch {
	case !s.rollsSystem(s.group):
		return math.MaxInt
	case s.deployments.halted() || s.out.unhealthy || state != nil && state.UnhealthyAllocs > 0:
		return 0
	}
	return max(optional.Value(s.group.Update.MaxParallel)-s.out.pending, 0)
}

// resize tells the deployment how many nodes should have the group: they come and go, also after its end. A node without
// room for it that never had it is no fault of the version, unless there are no others.
func (s *systemRun) resize() {
	g := s.group
	if !s.rollsSystem(g) {
		return
	}
	total := s.out.total
	if total == 0 && s.out.roomless > 0 {
		total, s.deployments.busy = s.out.roomless, true
	}
	s.deployments.resize(g.Name, total)
}

// resize sets how many allocations of the group the version's deployment wants, unless that failed or was cancelled.
func (d *deployments) resize(group string, total int) {
	if d.created != nil {
		if s := d.created.TaskGroups[group]; s != nil {
			s.DesiredTotal = total
		}
		return
	}
	x := d.resized
	if x == nil {
		x = d.current
	}
	if x == nil || x.TaskGroups[group] == nil || !x.Active() && x.Status != drover.DeploymentSuccessful {
		return
	}
	old := x.TaskGroups[group]
	next := *old
	next.DesiredTotal, next.DesiredCanaries = total, min(old.DesiredCanaries, total)
	if next.DesiredTotal == old.DesiredTotal && next.DesiredCanaries == old.DesiredCanaries {
		return
	}
	if d.resized == nil {
		d.resized = new(*x)
		d.resized.TaskGroups = maps.Clone(x.TaskGroups)
	}
	d.resized.TaskGroups[group] = &next
}

// finishEmpty ends a deployment for which there are no nodes: as nothing is placed nobody would come back to it.
func (d *deployments) finishEmpty() {
	if d.created == nil || d.busy {
		return
	}
	for _, s := range d.created.TaskGroups {
		if s.DesiredTotal > 0 {
			return
		}
	}
	d.setStatus(d.created, drover.DeploymentSuccessful, "Deployment completed successfully")
}
