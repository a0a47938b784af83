package fsm

import (
	"slices"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/leases"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/control/volumes"
)

// entry is one entry being applied: the transaction, and what it changed so far.
type entry struct {
	index uint64
	kind  command.Kind // of the (part of the) command being applied: the events' type
	txn   *store.Txn

	jobs        changes[drover.NamespacedID, *drover.Job]
	nodes       changes[string, *drover.Node]
	evals       changes[string, *drover.Evaluation]
	allocs      changes[string, *drover.Allocation]
	deployments changes[string, *drover.Deployment]
	pools       changes[string, *drover.NodePool]
	freed       changes[string, struct{}] // nodes with freed capacity
	told        []drover.Event            // of the fleet, of executions

	holders map[drover.NamespacedID][]leases.Holder // by pool, as far as this command asked
}

// changes keeps the last value of each key, in the order of the first change.
type changes[K comparable, V any] struct {
	at   map[K]int
	list []change[K, V]
}

// change is the outcome of an entry for one row: either stored or deleted.
type change[K comparable, V any] struct {
	key  K
	kind command.Kind
	now  V // the zero value if it was deleted
	gone V // the last value if it was deleted
}

// add records the newest value of a row. A row that an entry changes several times is told once, in its last form and
// at the place of its first change.
func (c *changes[K, V]) add(ch change[K, V]) {
	if c.at == nil {
		c.at = map[K]int{}
	}
	if i, ok := c.at[ch.key]; ok {
		ch.kind = c.list[i].kind // the first command to touch it names the event
		c.list[i] = ch
		return
	}
	c.at[ch.key] = len(c.list)
	c.list = append(c.list, ch)
}

// putJob stores the job as the current version and notes it for the events and for JobChanged. The caller has set the
// indexes, and must not change the job afterwards: readers of the store share it.
func (e *entry) putJob(j *drover.Job) {
	e.txn.PutJob(j)
	e.jobs.add(change[drover.NamespacedID, *drover.Job]{key: j.Key(), kind: e.kind, now: j})
}

// deleteJob forgets the job with all its versions. The events still carry its last form.
func (e *entry) deleteJob(j *drover.Job) {
	e.txn.DeleteJob(j)
	for _, c := range slices.Collect(e.txn.VolumeClaimsOf(j.Namespace, j.ID, "")) {
		e.dropClaim(c)
	}
	e.forgetDemand(j.Key())
	e.jobs.add(change[drover.NamespacedID, *drover.Job]{key: j.Key(), kind: e.kind, gone: j})
}

// putNode stores the node, whose indexes the caller has set.
func (e *entry) putNode(n *drover.Node) {
	e.txn.PutNode(n)
	e.nodes.add(change[string, *drover.Node]{key: n.ID, kind: e.kind, now: n})
}

// deleteNode forgets the node. Its allocations stay; the scheduler replaces them when it handles the command's
// evaluations.
func (e *entry) deleteNode(n *drover.Node) {
	e.txn.DeleteNode(n)
	e.tellVolumes(volumes.Lost(e.txn, e.index, n.ID), 0)
	e.nodes.add(change[string, *drover.Node]{key: n.ID, kind: e.kind, gone: n})
}

// putEvals stores copies with the indexes filled in.
func (e *entry) putEvals(evals []*drover.Evaluation) {
	for _, ev := range evals {
		if ev != nil {
			e.putEval(*ev)
		}
	}
}

// putEval stores its own copy of the evaluation, because the caller's value belongs to the decoded command. CreateIndex
// survives an update.
func (e *entry) putEval(ev drover.Evaluation) {
	ev.CreateIndex = e.index
	if old := e.txn.Evaluation(ev.ID); old != nil {
		ev.CreateIndex = old.CreateIndex
	}
	ev.ModifyIndex = e.index
	e.txn.PutEvaluation(&ev)
	e.evals.add(change[string, *drover.Evaluation]{key: ev.ID, kind: e.kind, now: &ev})
}

// deleteEvals forgets the evaluations and skips unknown ids: garbage collection chose them from an older state. Neither
// events nor EvaluationsChanged tell of it.
func (e *entry) deleteEvals(ids []string) {
	for _, id := range ids {
		if ev := e.txn.Evaluation(id); ev != nil {
			e.txn.DeleteEvaluation(ev)
		}
	}
}

// putAlloc stores the allocation; old is what it replaces, nil if it is new.
func (e *entry) putAlloc(old, a *drover.Allocation) {
	e.txn.PutAllocation(a)
	e.allocs.add(change[string, *drover.Allocation]{key: a.ID, kind: e.kind, now: a})
	if old != nil && old.HoldsResources() && !a.HoldsResources() {
		e.freed.add(change[string, struct{}]{key: a.NodeID})
	}
}

// putDeployment stores the deployment, whose indexes the caller has set. It also makes deriveStatuses look at the job.
func (e *entry) putDeployment(d *drover.Deployment) {
	e.txn.PutDeployment(d)
	e.deployments.add(change[string, *drover.Deployment]{key: d.ID, kind: e.kind, now: d})
}

// putPool stores the node pool, whose indexes the caller has set.
func (e *entry) putPool(p *drover.NodePool) {
	e.txn.PutNodePool(p)
	e.pools.add(change[string, *drover.NodePool]{key: p.Name, kind: e.kind, now: p})
}

// deletePool forgets the node pool. The caller has checked that no node and no live job is in it.
func (e *entry) deletePool(p *drover.NodePool) {
	e.txn.DeleteNodePool(p)
	e.pools.add(change[string, *drover.NodePool]{key: p.Name, kind: e.kind, gone: p})
}

// tell passes on what changed; the transaction is committed and gave s.
func (e *entry) tell(o Observer, s *store.Snapshot) {
	if evs := e.events(); len(evs) > 0 {
		o.Events(drover.Events{Index: e.index, Events: evs})
	}
	for _, c := range e.jobs.list {
		o.JobChanged(e.index, c.key, c.now)
	}
	for _, c := range e.nodes.list {
		o.NodeChanged(e.index, c.key, c.now)
	}
	if len(e.evals.list) > 0 {
		evals := make([]*drover.Evaluation, len(e.evals.list))
		for i, c := range e.evals.list {
			evals[i] = c.now
		}
		o.EvaluationsChanged(e.index, evals)
	}
	for _, c := range e.freed.list {
		class := ""
		if n := s.Node(c.key); n != nil {
			class = n.ComputedClass
		}
		o.CapacityFreed(e.index, c.key, class)
	}
}
