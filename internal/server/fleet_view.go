package server

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/fleet/gate"
	"github.com/drover-project/drover/internal/fleet/ledger"
	"github.com/drover-project/drover/internal/fleet/pool"
	"github.com/drover-project/drover/internal/node/machine"
)

// corePriceMHz is what one reserved core counts as when machines are chosen, before a node says what its cores are.
const corePriceMHz = 3000

// fleetView is what the fleet sees of control: the work that waits, and the nodes that are its machines. It observes
// the log, so nothing is scanned to find out what waits.
type fleetView struct {
	store *store.Store
	// placed is told how long work waited until it was placed, in seconds; nil = nobody is.
	placed func(seconds float64, labels ...string)
	// drivers returns a driver that the group needs and that the pool's machines surely lack; nil = nothing is known.
	drivers func(*drover.FleetPolicy, *drover.TaskGroup) string

	mu      sync.Mutex
	blocked map[drover.NamespacedID]*blockedWork // guarded by mu; as are all below
	nodes   map[string]*pool.Node
	dirty   map[string]struct{} // nodes to look at again
	waiting chan struct{}       // closed when blocked changes
	// kinds are machines that were seen, by what they are made from; they stay when the machine is gone.
	kinds     map[machineKind]*drover.Node
	kindsSeen uint64        // counts changes of kinds
	reported  chan struct{} // closed when nodes change
}

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

func newFleetView(s *store.Store) *fleetView {
	return &fleetView{
		store: s, blocked: map[drover.NamespacedID]*blockedWork{}, nodes: map[string]*pool.Node{}, dirty: map[string]struct{}{},
		waiting: make(chan struct{}), reported: make(chan struct{}), kinds: map[machineKind]*drover.Node{},
	}
}

// listen has waited told of work that is placed from now on.
func (v *fleetView) listen(waited func(seconds float64, labels ...string)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.placed = waited
}

func wake(c *chan struct{}) {
	close(*c)
	*c = make(chan struct{})
}

// Events implements fsm.Observer.
func (v *fleetView) Events(events drover.Events) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for i := range events.Events {
		a, ok := events.Events[i].Payload["Allocation"].(*drover.Allocation)
		if !ok || events.Events[i].Topic != drover.TopicAllocation {
			continue
		}
		if v.nodes[a.NodeID] != nil {
			v.soil(a.NodeID)
		}
		if b := v.blocked[drover.NamespacedID{Namespace: a.Namespace, ID: a.JobID}]; b != nil && a.CreateIndex == events.Index {
			b.placed[a.TaskGroup]++
			wake(&v.waiting)
			if v.placed != nil {
				v.placed(max(0, time.Duration(a.CreateTime-b.since).Seconds()), b.nodePool)
			}
		}
	}
}

// poke has the loops look at the demand again.
func (v *fleetView) poke() {
	v.mu.Lock()
	defer v.mu.Unlock()
	wake(&v.waiting)
}

func (v *fleetView) soil(nodeID string) {
	if len(v.dirty) == 0 {
		wake(&v.reported)
	}
	v.dirty[nodeID] = struct{}{}
}

// EvaluationsChanged implements fsm.Observer.
func (v *fleetView) EvaluationsChanged(_ uint64, evals []*drover.Evaluation) {
	v.mu.Lock()
	defer v.mu.Unlock()
	failed := map[string]map[string]int{} // by evaluation that left something
	changed := false
	for _, e := range evals {
		if e.Status == drover.EvalComplete && len(e.FailedTGAllocs) > 0 {
			failed[e.ID] = lacking(e)
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
		wake(&v.waiting)
	}
}

// wantsMachines leaves out system jobs, which run on the machines that there are, and what does not wait for room.
func wantsMachines(e *drover.Evaluation) bool {
	if e.TriggeredBy == drover.TriggerMaxPlanAttempts && len(e.FailedTGAllocs) == 0 {
		return false
	}
	return e.Type != drover.JobTypeSystem && e.Type != drover.JobTypeSysBatch
}

func lacking(e *drover.Evaluation) map[string]int {
	queued := map[string]int{}
	for group := range e.FailedTGAllocs {
		queued[group] = e.QueuedAllocations[group]
	}
	return queued
}

func (v *fleetView) block(e *drover.Evaluation, queued map[string]int) {
	if len(e.FailedTGAllocs) > 0 {
		queued = lacking(e)
	}
	since := e.CreateTime
	if old := v.blocked[e.Job()]; old != nil {
		since = min(since, old.since)
	}
	b := &blockedWork{evalID: e.ID, since: since, queued: queued, placed: map[string]int{}}
	if j := v.store.Snapshot().Job(e.Namespace, e.JobID); j != nil {
		b.nodePool = j.NodePool
	}
	v.blocked[e.Job()] = b
}

// CapacityFreed implements fsm.Observer.
func (v *fleetView) CapacityFreed(uint64, string, string) {}

// NodeChanged implements fsm.Observer.
func (v *fleetView) NodeChanged(_ uint64, nodeID string, n *drover.Node) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.nodes[nodeID] != nil || n != nil && n.Attributes[gate.AttributeInstance] != "" {
		v.soil(nodeID)
	}
}

// JobChanged implements fsm.Observer.
func (v *fleetView) JobChanged(_ uint64, job drover.NamespacedID, now *drover.Job) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.blocked[job] != nil && (now == nil || now.Stop) {
		delete(v.blocked, job)
		wake(&v.waiting)
	}
}

// Restored implements fsm.RestoreObserver.
func (v *fleetView) Restored(uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	s := v.store.Snapshot()
	v.blocked, v.nodes = map[drover.NamespacedID]*blockedWork{}, map[string]*pool.Node{}
	for e := range s.Evaluations("*", "") {
		if e.Status != drover.EvalBlocked || !wantsMachines(e) {
			continue
		}
		var queued map[string]int
		if before := s.Evaluation(e.PreviousEval); before != nil && len(before.FailedTGAllocs) > 0 {
			queued = lacking(before)
		}
		v.block(e, queued)
	}
	for n := range s.Nodes("") {
		if n.Attributes[gate.AttributeInstance] != "" {
			v.dirty[n.ID] = struct{}{}
		}
	}
	wake(&v.waiting)
	wake(&v.reported)
}

// served says which node pool's machines a job waits for; those that may run anywhere count for the first pool.
func served(j *drover.Job, first string) string {
	if j.NodePool == drover.AllNodePool {
		return first
	}
	return j.NodePool
}

// classes returns what waits for nodes of the pool, in a fixed order, and a channel that the next change closes.
func (v *fleetView) classes(nodePool, first string) ([]drover.DemandClass, <-chan struct{}) {
	v.mu.Lock()
	defer v.mu.Unlock()
	s := v.store.Snapshot()
	for nodeID := range v.dirty { // what was seen before a restart is known before anything is bought
		if n := s.Node(nodeID); n != nil && n.Attributes[gate.AttributeInstance] != "" {
			v.look(n)
		}
	}
	var list []drover.DemandClass
	for key, b := range v.blocked {
		j := s.Job(key.Namespace, key.ID)
		if j == nil || j.Stop || served(j, first) != nodePool {
			continue
		}
		for _, g := range j.TaskGroups {
			if n := b.count(s, j, g); n > 0 {
				c := classOf(j, g, n, b.since)
				c.Refusals = v.refusalsOf(s, b, j, g, nodePool)
				list = append(list, c)
			}
		}
	}
	slices.SortFunc(list, func(a, b drover.DemandClass) int { return cmp.Compare(a.Name, b.Name) })
	return list, v.waiting
}

// count returns how many of the group wait: what the scheduler left, less what was placed since.
func (b *blockedWork) count(s *store.Snapshot, j *drover.Job, g *drover.TaskGroup) int {
	if b.queued != nil {
		return b.queued[g.Name] - b.placed[g.Name]
	}
	want := 1 // a restart lost what the scheduler said
	if g.Count != nil {
		want = *g.Count
	}
	if g.Pool != nil {
		want = g.Pool.Size + g.Pool.Demand
	}
	for a := range s.ActiveAllocationsByJob(j.Namespace, j.ID) {
		if a.TaskGroup == g.Name && !a.Terminal() && a.Claim == nil {
			want--
		}
	}
	return want
}

func classOf(j *drover.Job, g *drover.TaskGroup, n int, since int64) drover.DemandClass {
	c := drover.DemandClass{
		Name: j.ID + "/" + g.Name, NodePool: j.NodePool, Each: g.Asked(), Count: n, Priority: j.Priority, Since: time.Unix(0, since),
		Constraints: slices.Concat(j.Constraints, g.Constraints),
	}
	if j.Namespace != drover.DefaultNamespace {
		c.Name = j.Namespace + "/" + c.Name
	}
	if d := within(j.Datacenters); d != nil {
		c.Constraints = append(c.Constraints, d)
	}
	for _, t := range g.Tasks {
		c.Constraints = append(c.Constraints, t.Constraints...)
		if t.Resources == nil {
			continue
		}
		c.Each.CPU += int64(t.Resources.Cores) * corePriceMHz
		for _, d := range t.Resources.Devices {
			if c.Devices == nil {
				c.Devices = map[string]int{}
			}
			c.Devices[d.Name] += int(max(d.Count, 1))
			c.Constraints = append(c.Constraints, d.Constraints...)
		}
	}
	return c
}

// within is the constraint that a node is in one of the job's datacenters, which may be patterns; nil if any will do.
func within(datacenters []string) *drover.Constraint {
	var all []string
	for _, d := range datacenters {
		if d == "*" {
			return nil
		}
		all = append(all, strings.ReplaceAll(regexp.QuoteMeta(d), `\*`, ".*"))
	}
	if len(all) == 0 {
		return nil
	}
	return &drover.Constraint{LTarget: "${node.datacenter}", Operand: "regexp", RTarget: "^(?:" + strings.Join(all, "|") + ")$"}
}

// machines returns the nodes that are machines of the fleet, and a channel that the next change closes.
func (v *fleetView) machines() ([]pool.Node, <-chan struct{}) {
	v.mu.Lock()
	defer v.mu.Unlock()
	s := v.store.Snapshot()
	for nodeID := range v.dirty {
		if n := s.Node(nodeID); n != nil && n.Attributes[gate.AttributeInstance] != "" {
			v.nodes[nodeID] = machineOf(s, n)
			v.look(n)
		} else {
			delete(v.nodes, nodeID)
		}
	}
	clear(v.dirty)
	list := make([]pool.Node, 0, len(v.nodes))
	for _, id := range slices.Sorted(maps.Keys(v.nodes)) {
		list = append(list, *v.nodes[id])
	}
	return list, v.reported
}

func machineOf(s *store.Snapshot, n *drover.Node) *pool.Node {
	m := &pool.Node{ID: n.ID, Intent: n.Attributes[gate.AttributeInstance], Lost: n.Status != drover.NodeStatusReady}
	r := &m.Report
	r.Ready, r.Drained = n.Status == drover.NodeStatusReady, n.SchedulingEligibility != drover.NodeEligible || n.Drain
	r.Broken = n.Attributes[machine.AttributeBroken]
	r.Total, r.Attributes, r.Movable, r.Jobs = n.Total(), constraintNames(n), true, []ledger.Use{}
	if r.Broken != "" {
		r.Total, r.Attributes = drover.Capacity{}, nil // it is not what others of its kind will be
	}
	if at, err := time.Parse(time.RFC3339, n.Attributes[machine.AttributeInterrupted]); err == nil {
		r.InterruptAt = at
	}
	for a := range s.UnfinishedByNode(n.ID) {
		used := a.AllocatedResources.Used()
		r.Jobs = append(r.Jobs, ledger.Use{Job: drover.NamespacedID{Namespace: a.Namespace, ID: a.JobID}, Used: used})
		r.Used = r.Used.Add(used)
		if a.Job != nil && a.Job.Type == drover.JobTypeSystem {
			continue // runs wherever there is a machine: it keeps none
		}
		r.Work++
		r.Movable = r.Movable && movable(a)
	}
	return m
}

// movable reports whether the allocation's work can go on elsewhere: services, and runners that nobody has claimed.
func movable(a *drover.Allocation) bool {
	return a.Claim == nil && a.Job != nil && a.Job.Type == drover.JobTypeService
}

// constraintNames are the node's attributes by what follows "attr." in constraints, and the others by their whole name.
func constraintNames(n *drover.Node) map[string]string {
	out := make(map[string]string, len(n.Attributes)+len(n.Meta)+2)
	for k, v := range n.Attributes {
		if !strings.HasPrefix(k, "unique.") { // another machine will have another
			out[k] = v
		}
	}
	for k, v := range n.Meta {
		out["meta."+k] = v
	}
	out["node.datacenter"] = n.Datacenter
	out["node.class"], out["node.pool"] = n.NodeClass, n.NodePool
	return out
}
