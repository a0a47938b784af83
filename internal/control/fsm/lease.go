package fsm

import (
	"fmt"
	"maps"
	"slices"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/leases"
	"github.com/drover-project/drover/internal/control/trigger"
	"github.com/drover-project/drover/internal/id"
)

// A warm runner is leased to one incarnation of a server from when it becomes running. While it is unclaimed that never
// changes unless its holder says that it did not hand it out: whoever else loses a lease loses the runner. So no two servers
// ever may hand out the same one, whatever each of them has seen of the log.

// applyLeases dispatches the commands of servers that share warm runners.
func (e *entry) applyLeases(c command.Command) (any, error) {
	switch c := c.(type) {
	case *command.BeginIncarnation:
		return e.beginIncarnation(c), nil
	case *command.EndIncarnation:
		e.endIncarnation(c)
		return nil, nil
	case *command.RecordRunners:
		return e.recordRunners(c), nil
	}
	return e.applyFleet(c)
}

// beginIncarnation begins a life of a server's execution service, and ends the one before. What nobody was leased, while there
// was no server for it or one that was alone, is dealt with as what an ended incarnation had.
func (e *entry) beginIncarnation(c *command.BeginIncarnation) command.Begun {
	begun := command.Begun{Incarnation: e.index}
	for l := range e.txn.Lessees() {
		if l.Server == c.Server {
			begun.Former = l.Incarnation
		}
	}
	e.txn.PutLessee(&cluster.Lessee{Server: c.Server, Incarnation: e.index, ModifyIndex: e.index})
	short := e.endLeases([]uint64{0, begun.Former}, e.index, false, c.Time)
	short = append(short, e.sumDemands()...)
	e.putEvals(c.Evals)
	e.refill(short, c.Evals, c.Time)
	return begun
}

// endIncarnation ends a life of a server's execution service, or takes the claimed runners from one whose process is gone.
func (e *entry) endIncarnation(c *command.EndIncarnation) {
	if c.Claimed {
		e.moveClaimed(c.Incarnation, e.heir(c.Heir, c.Incarnation), c.Time)
		return
	}
	if l := e.txn.Lessee(c.Incarnation); l != nil {
		e.txn.DeleteLessee(l)
	}
	short := e.endLeases([]uint64{c.Incarnation}, e.heir(c.Heir, c.Incarnation), c.Returned, c.Time)
	short = append(short, e.sumDemands()...)
	e.putEvals(c.Evals)
	e.refill(short, c.Evals, c.Time)
}

// heir is the incarnation, or if that has ended the oldest live one but the former; 0 without any.
func (e *entry) heir(incarnation, former uint64) uint64 {
	oldest := uint64(0)
	for l := range e.txn.Lessees() {
		if l.Incarnation == former {
			continue
		}
		if l.Incarnation == incarnation {
			return incarnation
		}
		if oldest == 0 || l.Incarnation < oldest {
			oldest = l.Incarnation
		}
	}
	return oldest
}

// refill has the scheduler look at jobs whose runners were stopped, or whose demand changed, if the command has no evaluation of
// them. A server that just came back does not know all of them when it proposes it. The id is made of the entry's, so that all
// servers have the same.
func (e *entry) refill(jobs []drover.NamespacedID, evals []*drover.Evaluation, now int64) {
	for i, key := range jobs {
		if slices.Contains(jobs[:i], key) {
			continue
		}
		covered := slices.ContainsFunc(evals, func(ev *drover.Evaluation) bool { return ev != nil && ev.Job() == key })
		if j := e.txn.Job(key.Namespace, key.ID); j != nil && !covered {
			maker := trigger.Maker{IDs: derived(fmt.Sprintf("refill %d %s/%s", e.index, key.Namespace, key.ID)), Now: now}
			e.putEval(*maker.Job(j, drover.TriggerAllocStop))
		}
	}
}

// derived is a source of the id that is made of a text.
type derived string

// New implements id.Source.
func (d derived) New() string { return id.Named(string(d)) }

// endLeases gives the claimed runners of ended incarnations to the heir, and stops the others, or leases them anew. It returns the
// jobs of those that it stopped.
func (e *entry) endLeases(ended []uint64, heir uint64, returned bool, now int64) (short []drover.NamespacedID) {
	e.holders = nil
	for _, old := range e.pooled() {
		running := old.Lease != 0 || old.ClientStatus != drover.AllocClientPending
		if old.Terminal() || !running || !slices.Contains(ended, old.Lease) {
			continue
		}
		a := *old
		a.ModifyIndex, a.ModifyTime = e.index, now
		switch {
		case old.Claim != nil:
			a.Lease = heir
		case returned:
			a.Lease = e.lease(&a)
		default:
			a.DesiredStatus, a.DesiredDescription = drover.AllocDesiredStop, "it may have been handed out by a server that ended"
			a.AllocModifyIndex = e.index
			if key := (drover.NamespacedID{Namespace: a.Namespace, ID: a.JobID}); !slices.Contains(short, key) {
				short = append(short, key)
			}
		}
		e.putAlloc(old, &a)
	}
	return short
}

// moveClaimed gives an incarnation's claimed runners to the heir, if there is one.
func (e *entry) moveClaimed(from, heir uint64, now int64) {
	if heir == 0 {
		return
	}
	for _, old := range e.pooled() {
		if old.Claim == nil || old.Lease != from || old.Terminal() {
			continue
		}
		a := *old
		a.ModifyIndex, a.ModifyTime, a.Lease = e.index, now, heir
		e.putAlloc(old, &a)
	}
}

// pooled returns the allocations of all warm pools, in the order of their jobs and ids. Of a job that was purged some may still
// be there, which the scheduler has not stopped yet.
func (e *entry) pooled() (all []*drover.Allocation) {
	for row := range e.txn.JobRows() {
		namespace, id := row.Summary.Namespace, row.Summary.JobID
		if j := e.txn.Job(namespace, id); j != nil && !hasPool(j) {
			continue
		}
		for a := range e.txn.OpenByJob(namespace, id) {
			if inPool(a) {
				all = append(all, a)
			}
		}
	}
	return all
}

// inPool reports whether the allocation was placed for a warm pool.
func inPool(a *drover.Allocation) bool {
	if a.Job == nil {
		return false
	}
	g := a.Job.Group(a.TaskGroup)
	return g != nil && g.Pool != nil
}

// leaseRunning leases a runner that became running to one of the servers; there is none while a server is alone.
func (e *entry) leaseRunning(old, a *drover.Allocation) {
	if a.Lease == 0 && a.Claim == nil && a.ClientStatus == drover.AllocClientRunning && !a.ServerTerminal() &&
		old.ClientStatus == drover.AllocClientPending && inPool(a) {
		a.Lease = e.lease(a)
	}
}

// lease says which incarnation gets the runner, and counts it there; 0 if there is none.
func (e *entry) lease(a *drover.Allocation) uint64 {
	key := drover.NamespacedID{Namespace: a.Namespace, ID: a.JobID}
	holders, ok := e.holders[key]
	if !ok {
		holders = e.holdersOf(key)
		if e.holders == nil {
			e.holders = map[drover.NamespacedID][]leases.Holder{}
		}
		e.holders[key] = holders
	}
	i := leases.Choose(holders)
	if i < 0 {
		return 0
	}
	holders[i].Held++
	return holders[i].Incarnation
}

// holdersOf counts what the live incarnations hold of a pool.
func (e *entry) holdersOf(key drover.NamespacedID) (holders []leases.Holder) {
	for l := range e.txn.Lessees() {
		holders = append(holders, leases.Holder{Incarnation: l.Incarnation, Wanted: l.Demands[demandKey(key)]})
	}
	if len(holders) == 0 {
		return nil
	}
	for a := range e.txn.OpenByJob(key.Namespace, key.ID) {
		if a.Lease == 0 || a.Claim != nil || a.Terminal() {
			continue
		}
		if i := slices.IndexFunc(holders, func(h leases.Holder) bool { return h.Incarnation == a.Lease }); i >= 0 {
			holders[i].Held++
		}
	}
	return holders
}

// recordRunners records what a server did with its runners.
func (e *entry) recordRunners(c *command.RecordRunners) []command.ClaimResult {
	results := make([]command.ClaimResult, len(c.Claims))
	for i, claim := range c.Claims {
		results[i] = command.ClaimResult{AllocID: claim.AllocID, Err: e.claim(claim, c.Incarnation, c.Time)}
	}
	e.demand(c.Incarnation, c.Demands)
	var released []string
	for _, id := range c.Released {
		if a := e.txn.Allocation(id); a != nil && a.Lease == c.Incarnation {
			released = append(released, id)
		}
	}
	e.stop(released, c.Reason, c.Time)
	e.putEvals(c.Evals)
	return results
}

// demand notes how many claims wait at a server, and what the pools need for those of all servers together.
func (e *entry) demand(incarnation uint64, demands []command.PoolDemand) {
	l := e.txn.Lessee(incarnation)
	if l == nil || len(demands) == 0 {
		return
	}
	next := *l
	next.ModifyIndex, next.Demands = e.index, maps.Clone(l.Demands)
	if next.Demands == nil {
		next.Demands = map[string]int{}
	}
	for _, d := range demands {
		key := drover.NamespacedID{Namespace: d.Namespace, ID: d.JobID}
		if next.Demands[demandKey(key)] = d.Demand; d.Demand <= 0 {
			delete(next.Demands, demandKey(key))
		}
	}
	e.txn.PutLessee(&next)
	for _, d := range demands {
		e.sumDemand(drover.NamespacedID{Namespace: d.Namespace, ID: d.JobID})
	}
}

// demandKey is the key of a job in Lessee.Demands.
func demandKey(job drover.NamespacedID) string { return job.Namespace + "/" + job.ID }

// redemand gives a job that was just stored the demand of the claims that wait for its pool, and returns it as stored.
func (e *entry) redemand(j *drover.Job) *drover.Job {
	for l := range e.txn.Lessees() {
		if l.Demands[demandKey(j.Key())] > 0 {
			e.sumDemand(j.Key())
			return e.txn.Job(j.Namespace, j.ID)
		}
	}
	return j
}

// forgetDemand drops the demands for a job that is forgotten.
func (e *entry) forgetDemand(job drover.NamespacedID) {
	for _, l := range slices.Collect(e.txn.Lessees()) {
		if l.Demands[demandKey(job)] == 0 {
			continue
		}
		next := *l
		next.ModifyIndex, next.Demands = e.index, maps.Clone(l.Demands)
		delete(next.Demands, demandKey(job))
		e.txn.PutLessee(&next)
	}
}

// looksAtDemand is the cluster version from which on pools whose demand went with a server are looked at: what the state machine does
// must be the same at all servers.
const looksAtDemand = 3

// sumDemands brings the demands of all pools up to date, after a server went. It returns the jobs of those whose demand changed.
func (e *entry) sumDemands() (changed []drover.NamespacedID) {
	var keys []drover.NamespacedID
	for j := range e.txn.Jobs("*", "") {
		if hasPool(j) {
			keys = append(keys, j.Key())
		}
	}
	looks := cluster.VersionOf(e.txn.Cluster()) >= looksAtDemand
	for _, key := range keys {
		before := e.txn.Job(key.Namespace, key.ID)
		if e.sumDemand(key); looks && e.txn.Job(key.Namespace, key.ID) != before {
			changed = append(changed, key)
		}
	}
	return changed
}

// sumDemand sets a pool's demand to what the claims at all servers need beside its size. What one server holds is of no use to
// who waits at another.
func (e *entry) sumDemand(key drover.NamespacedID) {
	j := e.txn.Job(key.Namespace, key.ID)
	if j == nil {
		return
	}
	for _, g := range j.TaskGroups {
		if g.Pool != nil {
			demand := leases.Demand(e.holdersOf(key), g.Pool.Size)
			e.setDemand(command.PoolDemand{Namespace: key.Namespace, JobID: key.ID, Demand: demand})
			return
		}
	}
}
