package fsm

import (
	"maps"
	"slices"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/leases"
	"github.com/drover-project/drover/internal/control/progress"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/quota"
)

// updateAllocs merges the reports of several nodes, which the server collects into one entry. Each report carries the
// id of the node that sent it, so that a node can only speak of its own allocations.
func (e *entry) updateAllocs(c *command.UpdateAllocs) {
	e.holders = nil // of an earlier command of the same entry
	for _, n := range c.Nodes {
		for i := range n.Updates {
			e.observe(n.NodeID, &n.Updates[i], c.Time)
		}
	}
	e.putEvals(c.Evals)
}

// observe merges what the node says. Only a node's own word ends an allocation, and an ended one does not come back;
// one that was given up as lost may still turn out to have completed or failed.
func (e *entry) observe(nodeID string, u *exchange.AllocUpdate, now int64) {
	old := e.txn.Allocation(u.ID)
	if old == nil {
		return
	}
	checkReport(old, nodeID, u)
	if old.NodeID != nodeID || u.Order != 0 && u.Order < old.Reported { // it has said something newer since
		return
	}
	a := *old
	a.Reported = max(old.Reported, u.Order)
	if acceptStatus(old.ClientStatus, u.ClientStatus) {
		a.ClientStatus, a.ClientDescription, a.UnknownSince = u.ClientStatus, u.ClientDescription, 0
	}
	if u.TaskStates != nil {
		a.TaskStates, a.FailingServices = u.TaskStates, u.FailingServices
	}
	if u.NetworkStatus != nil {
		a.NetworkStatus = u.NetworkStatus
	}
	a.ModifyIndex, a.ModifyTime = e.index, now
	// The node's own time wins, because its report may have waited before it was committed.
	if u.Time != 0 {
		a.ModifyTime = u.Time
	}
	switch {
	case u.DeploymentStatus != nil && u.DeploymentStatus.Healthy != nil && (u.DeploymentID == "" || u.DeploymentID == old.DeploymentID):
		e.setHealth(&a, *u.DeploymentStatus.Healthy, u.DeploymentStatus.Timestamp)
	case a.ClientStatus == drover.AllocClientFailed && !a.ServerTerminal() && a.DeploymentID != "" && !progress.Judged(&a):
		e.setHealth(&a, false, time.Unix(0, a.ModifyTime).UTC()) // its node could not even say that
	}
	e.leaseRunning(old, &a)
	e.putAlloc(old, &a)
	e.countInDeployment(old, &a)
	if !old.ClientTerminal() && a.EndedQuickly() {
		e.txn.CountQuickEnd(a.Namespace, a.JobID, now)
	}
}

// acceptStatus reports whether a node's report may change the client status from old to next. Complete and failed are
// final. A lost allocation may still turn out complete or failed, but never runs again: its replacement is running. An
// empty next means that the report says nothing about the status.
func acceptStatus(old, next string) bool {
	switch old {
	case drover.AllocClientComplete, drover.AllocClientFailed:
		return next == old // the description may still change
	case drover.AllocClientLost:
		return next == drover.AllocClientComplete || next == drover.AllocClientFailed
	}
	return next != ""
}

// setHealth sets the health on a copy of the deployment status; canary marks stay.
func (e *entry) setHealth(a *drover.Allocation, healthy bool, at time.Time) {
	var s drover.AllocDeploymentStatus
	if a.DeploymentStatus != nil {
		s = *a.DeploymentStatus
	}
	s.Healthy, s.Timestamp, s.ModifyIndex = &healthy, at, e.index
	a.DeploymentStatus = &s
}

// transitionAllocs asks for migrations, reschedules and the like. The ids are sorted because the order of a Go map is
// random, and each replica must write the same events in the same order.
func (e *entry) transitionAllocs(c *command.TransitionAllocs) {
	for _, id := range slices.Sorted(maps.Keys(c.Transitions)) {
		if a := e.txn.Allocation(id); a != nil {
			e.transition(a, c.Transitions[id], c.Time)
		}
	}
	e.putEvals(c.Evals)
}

// transition sets the fields of the desired transition that t has, and keeps the others: nil means unchanged.
// AllocModifyIndex advances as well, which wakes the node.
func (e *entry) transition(old *drover.Allocation, t drover.DesiredTransition, now int64) {
	a := *old
	d := &a.DesiredTransition
	for _, f := range []struct{ to, from **bool }{
		{&d.Migrate, &t.Migrate},
		{&d.Reschedule, &t.Reschedule},
		{&d.ForceReschedule, &t.ForceReschedule},
		{&d.NoShutdownDelay, &t.NoShutdownDelay},
		{&d.MigrateDisablePlacement, &t.MigrateDisablePlacement},
	} {
		if *f.from != nil {
			*f.to = *f.from
		}
	}
	a.ModifyIndex, a.AllocModifyIndex, a.ModifyTime = e.index, e.index, now
	e.putAlloc(old, &a)
}

// stopAllocs marks allocations as to be stopped, without a plan. Unknown ones and those that were stopped before are
// skipped, so that a repeated command does not overwrite the first description.
func (e *entry) stopAllocs(c *command.StopAllocs) {
	e.stop(c.IDs, c.Description, c.Time)
	e.putEvals(c.Evals)
}

// stop marks the allocations as to be stopped.
func (e *entry) stop(ids []string, description string, now int64) {
	for _, id := range ids {
		old := e.txn.Allocation(id)
		if old == nil || old.ServerTerminal() {
			continue
		}
		a := *old
		a.DesiredStatus, a.DesiredDescription = drover.AllocDesiredStop, description
		a.ModifyIndex, a.AllocModifyIndex, a.ModifyTime = e.index, e.index, now
		e.putAlloc(old, &a)
	}
}

// claimRunners leaves AllocModifyIndex: the node does nothing about a claim and is not woken by it.
func (e *entry) claimRunners(c *command.ClaimRunners) []command.ClaimResult {
	results := make([]command.ClaimResult, len(c.Claims))
	for i, claim := range c.Claims {
		results[i] = command.ClaimResult{AllocID: claim.AllocID, Err: e.claim(claim, 0, c.Time)}
	}
	for _, d := range c.Demands {
		e.setDemand(d)
	}
	e.putEvals(c.Evals)
	return results
}

// claim hands a warm runner out that is leased to the incarnation. It returns NotFound for an unknown allocation. It returns
// Conflict if the runner has another claim, has ended, or is leased to another. The log's order decides between claimers, so a
// runner is handed out only once. A claimer that repeats its claim succeeds without a change, and may set another idle timeout.
func (e *entry) claim(c command.RunnerClaim, incarnation uint64, now int64) error {
	old := e.txn.Allocation(c.AllocID)
	switch {
	case old == nil:
		return drover.Errorf(drover.NotFound, "runner %s: alloc not found", c.AllocID)
	case handedOutAgain(old, &c):
		return drover.Errorf(drover.Conflict, "runner %s was already claimed at another time", c.AllocID)
	case old.Claim != nil && old.Claim.RunnerID == c.Claim.RunnerID &&
		(old.Claim.IdleTimeout == c.Claim.IdleTimeout || old.Terminal() || old.Lease != incarnation):
		return nil // another server that keeps it now sets its idle timeout
	case old.Claim != nil && old.Claim.RunnerID == c.Claim.RunnerID: // its claimer extended it
	case old.Claim != nil:
		return drover.Errorf(drover.Conflict, "runner %s was already claimed as %s", c.AllocID, old.Claim.RunnerID)
	case old.Terminal():
		return drover.Errorf(drover.Conflict, "runner %s has ended", c.AllocID)
	case old.Claim == nil && old.Lease != incarnation:
		return drover.Errorf(drover.Conflict, "runner %s is not leased to who handed it out", c.AllocID)
	case incarnation != 0 && e.usedKey(old, execution.OnceKey(c.Claim.Labels)):
		return drover.Errorf(drover.Conflict, "runner %s: another runner was claimed with the same Idempotency-Key", c.AllocID)
	}
	if err := e.affords(old, &c); err != nil {
		return err
	}
	a := *old
	a.Claim, a.ModifyIndex, a.ModifyTime = &c.Claim, e.index, now
	e.putAlloc(old, &a)
	return nil
}

// affords refuses a first claim that is to be bounded by the quota of its namespace. Errors: Exhausted.
func (e *entry) affords(of *drover.Allocation, c *command.RunnerClaim) error {
	if !c.Bounded || of.Claim != nil {
		return nil
	}
	account := e.txn.QuotaAccount(of.Namespace)
	return account.Refusal("", quota.Amount{Runners: 1})
}

// usedKey reports whether another runner of the same environment has a claim with the key. Two servers may believe that they lead, and
// each hand one out.
func (e *entry) usedKey(of *drover.Allocation, key string) bool {
	if key == "" || of.Claim != nil {
		return false
	}
	for a := range e.txn.OpenByJob(of.Namespace, of.JobID) {
		if a.Claim != nil && a.ID != of.ID && !a.Terminal() && execution.OnceKey(a.Claim.Labels) == key {
			return true
		}
	}
	return false
}

// setDemand changes a pool's demand, which is no new version of its job: no runner is touched by it.
func (e *entry) setDemand(d command.PoolDemand) {
	old := e.txn.Job(d.Namespace, d.JobID)
	if old == nil || old.Stop {
		return
	}
	j := *old
	groups, changed := leases.WithDemand(old.TaskGroups, max(d.Demand, 0))
	if !changed {
		return
	}
	j.TaskGroups, j.ModifyIndex = groups, e.index
	e.putJob(&j)
}
