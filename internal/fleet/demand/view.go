package demand

import (
	"iter"
	"sync"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/constraint"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/fleet/gate"
	"github.com/drover-project/drover/internal/fleet/pool"
)

// State is what the view reads, all of one moment. What is not known is nil.
type State interface {
	Job(namespace, id string) *drover.Job
	Evaluation(id string) *drover.Evaluation
	Evaluations(namespace, prefix string) iter.Seq[*drover.Evaluation]
	ActiveAllocationsByJob(namespace, id string) iter.Seq[*drover.Allocation]
	Node(id string) *drover.Node
	Nodes(prefix string) iter.Seq[*drover.Node]
	UnfinishedByNode(nodeID string) iter.Seq[*drover.Allocation]
	FleetPools() iter.Seq[*fleet.Pool]
}

// Config is what the view knows of agents and providers.
type Config struct {
	BrokenAttribute      string // of a node whose run probe fails; its value says why
	InterruptedAttribute string // of a node that the cloud takes back; its value is when (RFC 3339)
	// Local reports that machines of the provider are guests of this machine, with its drivers; nil = nothing is known of
	// providers.
	Local func(provider string) bool
}

// Deps is what a View needs of others.
type Deps struct {
	State func() State // of now
	Now   func() time.Time
	// Lacks returns what a node lacks to run the group whatever else runs on it, without constraints that skip reports;
	// "" = nothing.
	Lacks func(j *drover.Job, g *drover.TaskGroup, n *drover.Node, skip func(*constraint.Constraint) bool) string
}

// View is what the fleet sees of control: the work that waits, and the nodes that are its machines. It observes the log, so
// nothing is scanned to find out what waits. It may be used by several goroutines at once.
type View struct {
	cfg  Config
	deps Deps

	mu      sync.Mutex
	placed  PlacedFunc                           // nil = nobody is told; guarded by mu, as are all below
	blocked map[drover.NamespacedID]*blockedWork // work that could not be placed
	nodes   map[string]*pool.Node                // as last looked at, by the node's id
	dirty   map[string]struct{}                  // nodes to look at again
	waiting chan struct{}                        // closed when blocked changes
	// kinds are machines that were seen, by what they are made from; they stay when the machine is gone.
	kinds        map[machineKind]*drover.Node
	kindsVersion uint64        // counts changes of kinds
	reported     chan struct{} // closed when nodes change
}

// PlacedFunc is told how long work waited until it was placed, and for nodes of which pool.
type PlacedFunc func(seconds float64, nodePool ...string)

// blockedWork is a job whose groups could not all be placed.
type blockedWork struct {
	evalID string
	since  int64
	// nodePool is the job's.
	nodePool string
	queued   map[string]int // by group, of those that failed; nil: the job is counted
	placed   map[string]int // since then
	refused  map[string]refused
}

// New returns a view that knows of nothing: Restored fills it, and what is observed changes it.
func New(cfg Config, deps Deps) *View {
	return &View{
		cfg: cfg, deps: deps, blocked: map[drover.NamespacedID]*blockedWork{}, nodes: map[string]*pool.Node{}, dirty: map[string]struct{}{},
		waiting: make(chan struct{}), reported: make(chan struct{}), kinds: map[machineKind]*drover.Node{},
	}
}

// Listen has placed called for work that is placed from now on.
func (v *View) Listen(placed PlacedFunc) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.placed = placed
}

// broadcast closes the channel and puts a new one in its place.
func broadcast(c *chan struct{}) {
	close(*c)
	*c = make(chan struct{})
}

// Events implements fsm.Observer.
func (v *View) Events(events drover.Events) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for i := range events.Events {
		a, ok := events.Events[i].Payload["Allocation"].(*drover.Allocation)
		if !ok || events.Events[i].Topic != drover.TopicAllocation {
			continue
		}
		if v.nodes[a.NodeID] != nil {
			v.markDirty(a.NodeID)
		}
		if b := v.blocked[drover.NamespacedID{Namespace: a.Namespace, ID: a.JobID}]; b != nil && a.CreateIndex == events.Index {
			b.placed[a.TaskGroup]++
			broadcast(&v.waiting)
			if v.placed != nil {
				v.placed(max(0, time.Duration(a.CreateTime-b.since).Seconds()), b.nodePool)
			}
		}
	}
}

// Recheck has the loops look at the demand again.
func (v *View) Recheck() {
	v.mu.Lock()
	defer v.mu.Unlock()
	broadcast(&v.waiting)
}

func (v *View) markDirty(nodeID string) {
	if len(v.dirty) == 0 {
		broadcast(&v.reported)
	}
	v.dirty[nodeID] = struct{}{}
}

// EvaluationsChanged implements fsm.Observer.
func (v *View) EvaluationsChanged(_ uint64, evals []*drover.Evaluation) {
	v.mu.Lock()
	defer v.mu.Unlock()
	failed := map[string]map[string]int{} // by evaluation that left something
	changed := false
	for _, e := range evals {
		if e.Status == drover.EvalComplete && len(e.FailedTGAllocs) > 0 {
			failed[e.ID] = unplaced(e)
		}
		if b := v.blocked[e.Job()]; b != nil && b.evalID == e.ID && e.Terminal() {
			delete(v.blocked, e.Job())
			changed = true
		}
	}
	for _, e := range evals {
		if e.Status == drover.EvalBlocked && wantsMachines(e) {
			v.block(e, failed[e.PreviousEval])
			changed = true
		}
	}
	if changed {
		broadcast(&v.waiting)
	}
}

// wantsMachines leaves out system jobs, which run on the machines that there are, and what does not wait for room.
func wantsMachines(e *drover.Evaluation) bool {
	if e.TriggeredBy == drover.TriggerMaxPlanAttempts && len(e.FailedTGAllocs) == 0 {
		return false
	}
	return e.Type != drover.JobTypeSystem && e.Type != drover.JobTypeSysBatch
}

// unplaced is how many allocations of each group the evaluation found no place for.
func unplaced(e *drover.Evaluation) map[string]int {
	queued := map[string]int{}
	for group, m := range e.FailedTGAllocs {
		if len(m.QuotaExhausted) > 0 {
			continue // more machines would not help
		}
		queued[group] = e.QueuedAllocations[group]
	}
	return queued
}

func (v *View) block(e *drover.Evaluation, queued map[string]int) {
	if len(e.FailedTGAllocs) > 0 {
		queued = unplaced(e)
	}
	if e.QuotaLimitReached != "" && len(queued) == 0 {
		delete(v.blocked, e.Job())
		return
	}
	since := e.CreateTime
	if old := v.blocked[e.Job()]; old != nil {
		since = min(since, old.since)
	}
	b := &blockedWork{evalID: e.ID, since: since, queued: queued, placed: map[string]int{}}
	if j := v.deps.State().Job(e.Namespace, e.JobID); j != nil {
		b.nodePool = j.NodePool
	}
	v.blocked[e.Job()] = b
}

// CapacityFreed implements fsm.Observer.
func (v *View) CapacityFreed(uint64, string, string) {}

// NodeChanged implements fsm.Observer.
func (v *View) NodeChanged(_ uint64, nodeID string, n *drover.Node) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.nodes[nodeID] != nil || n != nil && n.Attributes[gate.AttributeInstance] != "" {
		v.markDirty(nodeID)
	}
}

// JobChanged implements fsm.Observer.
func (v *View) JobChanged(_ uint64, job drover.NamespacedID, now *drover.Job) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.blocked[job] != nil && (now == nil || now.Stop) {
		delete(v.blocked, job)
		broadcast(&v.waiting)
	}
}

// Restored implements fsm.RestoreObserver.
func (v *View) Restored(uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	s := v.deps.State()
	v.blocked, v.nodes = map[drover.NamespacedID]*blockedWork{}, map[string]*pool.Node{}
	for e := range s.Evaluations("*", "") {
		if e.Status != drover.EvalBlocked || !wantsMachines(e) {
			continue
		}
		var queued map[string]int
		if before := s.Evaluation(e.PreviousEval); before != nil && len(before.FailedTGAllocs) > 0 {
			queued = unplaced(before)
		}
		v.block(e, queued)
	}
	for n := range s.Nodes("") {
		if n.Attributes[gate.AttributeInstance] != "" {
			v.dirty[n.ID] = struct{}{}
		}
	}
	broadcast(&v.waiting)
	broadcast(&v.reported)
}
