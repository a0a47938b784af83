package leader

import (
	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/store"
)

// Events implements fsm.Observer.
func (l *Leader) Events(drover.Events) {}

// EvaluationsChanged implements fsm.Observer: the broker follows the state.
func (l *Leader) EvaluationsChanged(_ uint64, evals []*drover.Evaluation) {
	for _, e := range evals {
		l.route(e)
	}
}

// route brings an evaluation to where its status belongs in the broker. A complete one that placed everything ends the
// tracking of its job: nothing of it is blocked any more.
func (l *Leader) route(e *drover.Evaluation) {
	switch {
	case e.Status == drover.EvalPending:
		l.broker.Enqueue(e)
	case e.Status == drover.EvalBlocked:
		l.broker.Block(e, Ask(l.deps.Store.Snapshot(), e))
	case e.Terminal():
		l.broker.Ended(e.ID)
		if e.Status == drover.EvalComplete && len(e.FailedTGAllocs) == 0 {
			l.broker.Untrack(e.Job())
		}
	}
}

// Ask returns the least that a group which was not placed asks of a node: nothing smaller needs to be looked at. Where an
// allocation of another version would make room for its replacement, only what that asks beyond it has to be free.
//
// Older versions that are stable, or of which the job still has allocations, count too. While the newest version is not
// proven the scheduler places the newest stable one, or if there is none the newest one that runs.
func Ask(s *store.Snapshot, e *drover.Evaluation) drover.Capacity {
	j := s.Job(e.Namespace, e.JobID)
	if j == nil {
		return drover.Capacity{}
	}
	replaced := map[string][]drover.Capacity{}
	older := map[uint64]*drover.Job{} // versions that the scheduler may place
	for _, v := range s.JobVersions(e.Namespace, e.JobID) {
		if v.Stable {
			older[v.Version] = v
		}
	}
	for a := range s.ActiveAllocationsByJob(e.Namespace, e.JobID) {
		if a.Version() == j.Version {
			continue
		}
		if a.Job != nil && a.Job.CreateIndex == j.CreateIndex {
			older[a.Job.Version] = a.Job
		}
		if !a.Terminal() {
			replaced[a.TaskGroup] = append(replaced[a.TaskGroup], a.AllocatedResources.Used())
		}
	}
	var least drover.Capacity
	first := true
	for _, g := range j.TaskGroups {
		if _, failed := e.FailedTGAllocs[g.Name]; !failed && len(e.FailedTGAllocs) > 0 {
			continue
		}
		asked := g.Asked()
		if first {
			least, first = asked, false
		}
		least = least.Min(asked)
		for _, old := range replaced[g.Name] {
			least = least.Min(asked.Sub(old))
		}
		for _, v := range older {
			if g := v.Group(g.Name); g != nil {
				least = least.Min(g.Asked())
			}
		}
	}
	return drover.Capacity{CPU: max(0, least.CPU), MemoryMB: max(0, least.MemoryMB), DiskMB: max(0, least.DiskMB)}
}

// CapacityFreed implements fsm.Observer.
func (l *Leader) CapacityFreed(index uint64, nodeID, computedClass string) {
	l.broker.Freed(nodeID, computedClass, index)
}

// NodeChanged implements fsm.Observer.
func (l *Leader) NodeChanged(index uint64, nodeID string, node *drover.Node) {
	if node.Ready() {
		l.broker.Freed(nodeID, node.ComputedClass, index)
	}
}

// JobChanged implements fsm.Observer.
func (l *Leader) JobChanged(_ uint64, job drover.NamespacedID, now *drover.Job) {
	l.periodic.jobChanged(job, now)
}

// Restored implements fsm.RestoreObserver: another state is there. No term is under way then.
func (l *Leader) Restored(uint64) { l.periodic.forget() }

// restore gives the broker the evaluations of the state. Observed changes since Enable are in it already; evaluations
// are told apart by their ids.
func (l *Leader) restore() {
	s := l.deps.Store.Snapshot()
	for e := range s.Evaluations("*", "") {
		if !e.Terminal() {
			l.route(e)
		}
	}
	for j := range s.Jobs("*", "") {
		l.periodic.jobChanged(j.Key(), j)
	}
	l.heartbeats.restore(s)
}
