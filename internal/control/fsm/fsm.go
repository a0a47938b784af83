package fsm

import (
	"fmt"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/quotas"
	"github.com/drover-project/drover/internal/control/store"
)

// Observer is told what an entry changed, after its commit, in the order of the log, by the applying goroutine. It
// must not block, and must not change what it is given. It is also told while the log is replayed at start.
type Observer interface {
	// Events is called for every entry that changed something visible.
	Events(drover.Events)
	// EvaluationsChanged gives the evaluations that the entry stored, in their new form.
	EvaluationsChanged(index uint64, evals []*drover.Evaluation)
	// CapacityFreed is called once for each node on which allocations gave resources back.
	CapacityFreed(index uint64, nodeID, computedClass string)
	// NodeChanged gives a node that was stored; nil if it was forgotten.
	NodeChanged(index uint64, nodeID string, node *drover.Node)
	// JobChanged gives a job that was stored, also when only its status changed; nil if it was forgotten.
	JobChanged(index uint64, job drover.NamespacedID, now *drover.Job)
}

// RestoreObserver is an optional power of an Observer: it is told when the state jumped to a snapshot's index.
type RestoreObserver interface{ Restored(index uint64) }

// QuotaObserver is an optional power of an Observer. It is told of a quota whose namespaces may have room again, as they use
// less, it allows more, or they no longer refer to it.
type QuotaObserver interface {
	QuotaFreed(index uint64, quota string)
}

// FSM applies the log to a store. One goroutine at a time calls Apply or Restore; the rest may be called beside it.
type FSM struct {
	store    *store.Store
	observer Observer
	strings  *command.Interner // owned by Apply
	ahead    uint64            // cluster.State's; owned by Apply
	parts    *parts            // of a restore that is under way; nil = none is. Owned by Apply
}

// New returns an FSM over the store. A nil observer observes nothing.
func New(s *store.Store, o Observer) *FSM {
	if o == nil {
		o = Observers(nil)
	}
	return &FSM{store: s, observer: o, strings: command.NewInterner()}
}

// Store returns the state it applies to.
func (f *FSM) Store() *store.Store { return f.store }

// ErrUndecodable is wrapped by Apply's error when an entry is not a command of this program's. The state is unchanged then, its
// index too: applying later entries would make another state of the same log.
var ErrUndecodable = drover.Errorf(drover.Internal, "the log entry is not a command")

// Apply applies the encoded command at the raft index. The result and the errors are the command's. An entry that
// fails still advances the store's index, which is ahead of the log's where a snapshot of another log was restored.
func (f *FSM) Apply(index uint64, data []byte) (result any, err error) {
	index += f.ahead
	c, err := command.DecodeSharing(data, f.strings)
	if err != nil {
		return nil, fmt.Errorf("%w: entry %d: %w", ErrUndecodable, index, err)
	}
	return f.applyCommand(index, c)
}

// applyCommand applies a decoded command in one transaction of the store and then tells the observer. The transaction
// is committed even if the command failed: its check wrote nothing, and the index must advance. Job statuses are
// derived once, after all parts of a batch, because each part may touch the same job.
func (f *FSM) applyCommand(index uint64, c command.Command) (any, error) {
	switch c := c.(type) {
	case *command.Barrier: // with which a term of office begins
		f.parts = nil
		f.advance(index)
		return nil, nil
	case *command.RestoreState:
		return nil, f.restoreState(index, c)
	}
	f.otherEntry()
	e := &entry{index: index, txn: f.store.Begin(index)}
	var result any
	var err error
	if b, ok := c.(*command.Batch); ok {
		result = e.batch(b)
	} else {
		e.kind = c.Kind()
		result, err = e.apply(c)
	}
	e.deriveStatuses()
	roomier := e.txn.FreedQuotas()
	e.tell(f.observer, e.txn.Commit())
	if o, ok := f.observer.(QuotaObserver); ok {
		for _, name := range roomier {
			o.QuotaFreed(index, name)
		}
	}
	return result, err
}

// advance moves the store to the index without a change, for entries that have no effect on the state.
func (f *FSM) advance(index uint64) { f.store.Begin(index).Commit() }

// batch applies the commands in order and returns one result for each. A command that fails does not keep the later
// ones from being applied: they come from independent callers that only shared a log entry.
func (e *entry) batch(b *command.Batch) []command.Result {
	results := make([]command.Result, len(b.Commands))
	for i, c := range b.Commands {
		e.kind = c.Kind()
		results[i].Value, results[i].Err = e.apply(c)
	}
	return results
}

// apply dispatches a command to its apply function. The first result is what the proposer receives, nil for most
// commands. The kinds that a busy cluster writes all the time are here; applyRarer and applyFleet have the others.
func (e *entry) apply(c command.Command) (any, error) {
	switch c := c.(type) {
	case *command.Barrier:
		return nil, nil
	case *command.RegisterJob:
		return e.registerJob(c)
	case *command.DeregisterJob:
		return nil, e.deregisterJob(c)
	case *command.SetJobStability:
		return nil, e.setJobStability(c)
	case *command.TagJobVersion:
		return nil, e.tagJobVersion(c)
	case *command.UpdateEvals:
		e.putEvals(c.Evals)
		return nil, nil
	case *command.DeleteEvals:
		e.deleteEvals(c.IDs)
		return nil, nil
	case *command.ApplyPlans:
		e.applyPlans(c)
		return nil, nil
	case *command.UpdateAllocs:
		e.updateAllocs(c)
		return nil, nil
	case *command.TransitionAllocs:
		e.transitionAllocs(c)
		return nil, nil
	case *command.StopAllocs:
		e.stopAllocs(c)
		return nil, nil
	case *command.ClaimRunners:
		return e.claimRunners(c), nil
	case *command.TellExecutions:
		e.tellExecutions(c)
		return nil, nil
	case *command.RecordExecutions:
		return nil, e.recordExecutions(c)
	case *command.Reap:
		e.reap(c)
		return nil, nil
	}
	return e.applyRarer(c)
}

// applyRarer dispatches the commands that operators, nodes and deployments cause. It is apart from apply only to keep
// both functions short.
func (e *entry) applyRarer(c command.Command) (any, error) {
	switch c := c.(type) {
	case *command.RegisterNode:
		return nil, e.registerNode(c)
	case *command.UpdateNodeStatuses:
		e.updateNodeStatuses(c)
		return nil, nil
	case *command.SetEligibility:
		return nil, e.setEligibility(c)
	case *command.SetDrain:
		return nil, e.setDrain(c)
	case *command.DeregisterNodes:
		e.deregisterNodes(c)
		return nil, nil
	case *command.SetSchedulerConfig:
		return e.setSchedulerConfig(c), nil
	case *command.UpsertNamespaces:
		return nil, e.upsertNamespaces(c)
	case *command.DeleteNamespaces:
		return nil, e.deleteNamespaces(c)
	case *command.UpsertNodePools:
		return nil, e.upsertNodePools(c)
	case *command.DeleteNodePools:
		return nil, e.deleteNodePools(c)
	case *command.UpsertDeployment:
		e.upsertDeployment(c)
		return nil, nil
	case *command.UpdateDeploymentStatus:
		return nil, e.updateDeploymentStatus(c)
	case *command.SetAllocHealth:
		return nil, e.setAllocHealth(c)
	case *command.RecordScaling:
		return nil, e.recordScaling(c)
	case *command.SetNodeMeta:
		return e.setNodeMeta(c)
	case *command.PromoteDeployment:
		return nil, e.promoteDeployment(c)
	case *command.DispatchJob:
		return e.dispatchJob(c)
	}
	return e.applyServers(c)
}

// applyServers dispatches the commands about what several servers are together, and about what is in namespaces.
func (e *entry) applyServers(c command.Command) (any, error) {
	switch c := c.(type) {
	case *command.InitCluster:
		e.initCluster(c)
		return nil, nil
	case *command.RaiseVersion:
		e.raiseVersion(c)
		return nil, nil
	case *command.SetAutopilot:
		return e.setAutopilot(c), nil
	case *command.UpsertQuotas:
		return nil, quotas.Upsert(e.txn, e.index, c)
	case *command.DeleteQuotas:
		return nil, quotas.Delete(e.txn, c)
	case *command.UpsertAdmissionRules:
		return nil, e.upsertAdmissionRules(c)
	case *command.DeleteAdmissionRules:
		return nil, e.deleteAdmissionRules(c)
	case *command.BeginExecution:
		return quotas.BeginExecution(e.txn, c)
	case *command.DropExecution:
		quotas.DropExecution(e.txn, c.AllocID, c.ID)
		return nil, nil
	case *command.UpsertHostVolume:
		return e.upsertHostVolume(c)
	case *command.DeleteHostVolume:
		return e.deleteHostVolume(c)
	case *command.DeleteVolumeClaim:
		return nil, e.deleteVolumeClaim(c)
	}
	return e.applyRevocations(c)
}
