package sim

import (
	"iter"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/exec/runner"
)

// mutation is a rule of the product that is broken on purpose, outside of it: a test proves that a check finds each of them.
type mutation string

const (
	obedient  mutation = "nodes obey older state"
	hasty     mutation = "a new leader waits for no node"
	outdated  mutation = "a server hands out what is leased to it no more"
	greedy    mutation = "a server hands out what is leased to others"
	forgetful mutation = "claims are not written to the journal"
	impatient mutation = "idle runners end too early"
	unasked   mutation = "a leader stops runners without asking who may have handed them out"
)

// early is how much later the idle timers take the time to be than it is.
func (m mutation) early() time.Duration {
	if m == impatient {
		return 20 * time.Second
	}
	return 0
}

// state is the server's state as the core of its runners is given it.
func (r *runners) state() runner.Snapshot {
	s := r.s.store.Snapshot()
	if r.s.w.broken == greedy {
		return seized{s, r.lease}
	}
	return s
}

// seized is a state in which everything is leased to one server.
type seized struct {
	runner.Snapshot
	lease uint64
}

// Allocation implements runner.Snapshot.
func (s seized) Allocation(id string) *drover.Allocation { return s.take(s.Snapshot.Allocation(id)) }

// AllocationsByJob implements runner.Snapshot.
func (s seized) AllocationsByJob(namespace, id string) iter.Seq[*drover.Allocation] {
	return func(yield func(*drover.Allocation) bool) {
		for a := range s.Snapshot.AllocationsByJob(namespace, id) {
			if !yield(s.take(a)) {
				return
			}
		}
	}
}

func (s seized) take(a *drover.Allocation) *drover.Allocation {
	if a == nil || a.Lease == 0 {
		return a
	}
	mine := *a
	mine.Lease = s.lease
	return &mine
}
