package evalbroker

import (
	"slices"

	"github.com/drover-project/drover"
)

// Blocked keeps the evaluations that could not place everything until capacity that may help them is there. It is a
// value, as Broker is.
//
// Capacity that becomes free is an event in a log, with the raft index of its entry. An evaluation remembers up to which index
// the scheduler has seen the state for it (its SnapshotIndex). So an event that came between the snapshot and the blocking
// wakes it all the same. To spare the scheduler a stampede, an evaluation is woken only when what it asks for at least fits on
// the node of an unseen event. What the woken ones ask for is taken off the node's room until they are finished. Room that
// comes while an evaluation of higher priority is out is left to that one, if there is not enough for both: it is what its
// evictions made.
type Blocked struct {
	byJob      map[blockedKey]*blockedEval
	byID       map[string]*blockedEval
	order      []*blockedEval // by priority, then age
	events     []freed        // by index; one a node counts, the latest
	latest     map[string]uint64
	charges    map[string]charge // by evaluation
	charged    map[string]drover.Capacity
	woken      map[int]int // charges by priority
	floor      uint64
	duplicates []*drover.Evaluation

	quotas map[string]uint64 // the index of the latest event of each
	drawn  map[string]draw   // what the woken ones may use of quotas, by evaluation
}

// blockedKey: one evaluation a job, for system jobs one a job and node.
type blockedKey struct {
	job    drover.NamespacedID
	nodeID string
}

type blockedEval struct {
	eval *drover.Evaluation
	ask  drover.Capacity
	seen uint64 // events up to here cannot help
	read uint64 // likewise events of quotas
	now  bool   // wake without looking
}

type freed struct {
	nodeID, class string
	index         uint64
}

// charge is what a woken evaluation may use until it is finished.
type charge struct {
	nodeID   string
	amount   drover.Capacity
	priority int
	seen     uint64 // the latest event when it was woken
}

// NewBlocked returns an empty set.
func NewBlocked() *Blocked {
	b := &Blocked{}
	b.Flush()
	return b
}

// Flush forgets everything: leadership was lost.
func (b *Blocked) Flush() {
	*b = Blocked{
		byJob: map[blockedKey]*blockedEval{}, byID: map[string]*blockedEval{}, latest: map[string]uint64{},
		charges: map[string]charge{}, charged: map[string]drover.Capacity{}, woken: map[int]int{},
		quotas: map[string]uint64{}, drawn: map[string]draw{},
	}
}

// SetFloor says that events before index are not known: an evaluation with an older snapshot is woken at once.
func (b *Blocked) SetFloor(index uint64) { b.floor = index }

// Block keeps an evaluation until Wake returns it. ask is the least that any of its unplaced groups asks of a node;
// zero if that is not known. An older evaluation of the same job becomes a duplicate.
func (b *Blocked) Block(e *drover.Evaluation, ask drover.Capacity) {
	b.Finished(e.ID) // what it used is in the state; were it woken before its worker says so, it would be charged twice
	key := keyOf(e)
	if old := b.byJob[key]; old != nil {
		if old.eval.ID == e.ID {
			old.eval = e
			return
		}
		if newer(old.eval, e) {
			b.duplicates = append(b.duplicates, e)
			return
		}
		b.drop(old)
		b.duplicates = append(b.duplicates, old.eval)
	}
	be := &blockedEval{eval: e, ask: ask, seen: e.SnapshotIndex, read: e.SnapshotIndex, now: e.SnapshotIndex < b.floor}
	b.byJob[key] = be
	b.byID[e.ID] = be
	at, _ := slices.BinarySearchFunc(b.order, be, compareBlocked)
	b.order = slices.Insert(b.order, at, be)
}

func keyOf(e *drover.Evaluation) blockedKey {
	key := blockedKey{job: e.Job()}
	if e.Type == drover.JobTypeSystem || e.Type == drover.JobTypeSysBatch {
		key.nodeID = e.NodeID
	}
	return key
}

func compareBlocked(x, y *blockedEval) int {
	switch {
	case x.eval.Priority != y.eval.Priority:
		return y.eval.Priority - x.eval.Priority
	case x.eval.CreateIndex != y.eval.CreateIndex:
		if x.eval.CreateIndex < y.eval.CreateIndex {
			return -1
		}
		return 1
	case x.eval.ID < y.eval.ID:
		return -1
	case x.eval.ID > y.eval.ID:
		return 1
	}
	return 0
}

func (b *Blocked) drop(be *blockedEval) {
	delete(b.byJob, keyOf(be.eval))
	delete(b.byID, be.eval.ID)
	if at, ok := slices.BinarySearchFunc(b.order, be, compareBlocked); ok {
		b.order = slices.Delete(b.order, at, at+1)
	}
}

// Remove forgets an evaluation that ended in the state, also one that was woken and never came to a worker, because a
// newer one of its job superseded it. It reports, as Finished does, whether others may now be helped.
func (b *Blocked) Remove(evalID string) (rewake bool) {
	if be := b.byID[evalID]; be != nil {
		b.drop(be)
	}
	return b.Finished(evalID)
}

// Untrack forgets the job's evaluations, as everything was placed; they become duplicates.
func (b *Blocked) Untrack(job drover.NamespacedID) {
	for _, be := range slices.Clone(b.order) {
		if be.eval.Job() == job {
			b.drop(be)
			b.duplicates = append(b.duplicates, be.eval)
		}
	}
}

// Duplicates returns, once, the evaluations that became needless. They are to be cancelled.
func (b *Blocked) Duplicates() []*drover.Evaluation {
	out := b.duplicates
	b.duplicates = nil
	return out
}

// Len returns how many evaluations are blocked, and how many of them wake on any class of node.
func (b *Blocked) Len() (all, escaped int) {
	for _, be := range b.order {
		if be.eval.EscapedComputedClass {
			escaped++
		}
	}
	return len(b.order), escaped
}
