package rank

import (
	"encoding/binary"
	"math"
	"math/rand/v2"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/constraint"
	"github.com/drover-project/drover/internal/control/scheduler/feasible"
	"github.com/drover-project/drover/internal/control/scheduler/grant"
)

// Terms are what all boards of one evaluation have in common.
type Terms struct {
	Snapshot       Snapshot
	Job            *drover.Job // the version whose groups are placed
	Random         *rand.Rand  // for dynamic ports
	Matcher        *feasible.Matcher
	Oversubscribed bool // tasks may use more memory than they reserve
	SpreadFit      bool // empty nodes are better than full ones
	Volumes        feasible.Volumes
}

// Board ranks the nodes that can run a group. All are scored once; afterwards only what changed is scored again. Each node
// is an entry, and known outside by its number, from 0 to Len()-1.
type Board struct {
	Group *drover.TaskGroup
	// Metric explains the placements: it grows with each node that is found to have no room.
	Metric *drover.AllocationMetric

	Terms
	stage       *Stage
	ask         *grant.Ask
	filter      *feasible.Filter
	writes      []drover.VolumeWrite // the host volumes that an allocation of the group writes
	desired     int                  // the group's count, for anti-affinity
	oneOfJob    bool                 // distinct_hosts of the job
	oneOfGroup  bool                 // distinct_hosts of the group
	affinities  []*constraint.Affinity
	properties  []*property
	hasSpreads  bool
	entries     []entry
	byCandidate []int32 // entry of each candidate, -1 if it is not feasible
	buckets     []bucket
	keys        map[string]int32
	tops        []int32   // best entry of each bucket, -1 if none
	scores      []float64 // its final score
	queue       []int32   // the buckets as a heap, the one with the best entry first
	place       []int32   // of each bucket in queue
	placed      int
}

// entry is a feasible node.
type entry struct {
	sum        float64
	affinity   float64
	cand       int32
	bucket     int32
	pos        int32  // in its heap, -1 if it is in none
	order      uint32 // breaks ties
	collisions int32  // live allocations of the group
	parts      uint8
	penalised  bool
	exhausted  bool
	gone       bool // ports, cores or devices were refused once; they do not come back during a plan
}

// NewBoard judges and scores every candidate of the stage for a group of t.Job. kept are the job's allocations that stay.
func NewBoard(t Terms, st *Stage, g *drover.TaskGroup, kept []*drover.Allocation) *Board {
	b := &Board{
		Terms: t, stage: st, Group: g, desired: g.DesiredCount(), keys: map[string]int32{},
		ask:    grant.NewAsk(g, t.Oversubscribed || g.Pool != nil),
		filter: feasible.NewFilter(t.Matcher, t.Job, g, len(st.classes)).Knowing(t.Volumes),
		writes: g.VolumeWrites(-1),
	}
	b.SpreadFit = b.SpreadFit || g.Pool != nil
	b.readPreferences()
	b.Metric = &drover.AllocationMetric{
		NodesEvaluated: len(st.nodes), NodesInPool: st.inPool, NodePool: t.Job.NodePool, NodesAvailable: st.available,
	}
	b.fill()
	b.countKept(kept)
	for i := range b.entries {
		b.admit(int32(i))
	}
	for i := range b.buckets {
		for _, h := range b.buckets[i].heaps {
			b.heapify(h)
		}
	}
	b.refreshAll()
	return b
}

// readPreferences gathers affinities, spreads and the distinct operands of job, group and tasks.
func (b *Board) readPreferences() {
	b.affinities = append(append(b.affinities, b.Job.Affinities...), b.Group.Affinities...)
	constraints := append([]*constraint.Constraint(nil), b.Group.Constraints...)
	for _, t := range b.Group.Tasks {
		b.affinities = append(b.affinities, t.Affinities...)
		constraints = append(constraints, t.Constraints...)
	}
	spreads := append(append([]*constraint.Spread(nil), b.Group.Spreads...), b.Job.Spreads...)
	weights := 0.0
	for _, s := range spreads {
		weights += weightOf(s)
	}
	for _, s := range spreads {
		b.properties = append(b.properties, newSpread(s, b.desired, weightOf(s)/weights))
	}
	b.hasSpreads = len(spreads) > 0
	b.oneOfJob = b.readDistinct(b.Job.Constraints)
	b.oneOfGroup = b.readDistinct(constraints)
}

// readDistinct reports whether hosts must differ, and adds each property that must. Nomad reads every value of
// distinct_hosts but "false" as true.
func (b *Board) readDistinct(cs []*constraint.Constraint) (hosts bool) {
	for _, c := range cs {
		switch c.Operand {
		case feasible.DistinctHosts:
			hosts = hosts || c.RTarget != "false"
		case feasible.DistinctProperty:
			b.properties = append(b.properties, newDistinct(c))
		}
	}
	return hosts
}

// fill makes an entry for each feasible candidate.
func (b *Board) fill() {
	b.entries = make([]entry, 0, len(b.stage.nodes))
	b.byCandidate = make([]int32, len(b.stage.nodes))
	for i := range b.stage.nodes {
		c := &b.stage.nodes[i]
		b.byCandidate[i] = -1
		if reason := b.filter.Refusal(c.node, c.class); reason != "" {
			b.filtered(c, reason)
			continue
		}
		b.byCandidate[i] = int32(len(b.entries))
		b.entries = append(b.entries, entry{
			cand: int32(i), bucket: b.bucketOf(c.node), pos: -1, order: c.order, affinity: b.affinityOf(c.node),
		})
	}
}

// bucketOf returns the bucket of the node's spread values.
func (b *Board) bucketOf(n *drover.Node) int32 {
	var fixed [32]byte
	key := fixed[:0]
	for _, p := range b.properties {
		key = binary.LittleEndian.AppendUint32(key, uint32(p.value(n)))
	}
	i, seen := b.keys[string(key)]
	if !seen {
		i = int32(len(b.buckets))
		b.keys[string(key)] = i
		values := make([]int32, len(b.properties))
		for j := range values {
			values[j] = int32(binary.LittleEndian.Uint32(key[4*j:]))
		}
		b.buckets = append(b.buckets, bucket{values: values})
		b.tops, b.scores = append(b.tops, -1), append(b.scores, math.Inf(-1))
		b.queue, b.place = append(b.queue, i), append(b.place, i)
	}
	return i
}

// countKept counts the job's staying allocations where they are.
func (b *Board) countKept(kept []*drover.Allocation) {
	for _, a := range kept {
		if a.TaskGroup != b.Group.Name {
			continue
		}
		if n := b.keptNode(a); n != nil {
			for _, p := range b.properties {
				p.add(p.value(n))
			}
		}
		if e := b.entryOf(a.NodeID); e >= 0 {
			b.entries[e].collisions++
		}
	}
}

// keptNode returns the node of a staying allocation, if its properties matter.
func (b *Board) keptNode(a *drover.Allocation) *drover.Node {
	if len(b.properties) == 0 {
		return nil
	}
	return b.Snapshot.Node(a.NodeID)
}

// Len is the number of nodes that can run the group.
func (b *Board) Len() int { return len(b.entries) }

// NodeID returns the id of a node of the board.
func (b *Board) NodeID(i int) string { return b.stage.nodes[b.entries[i].cand].node.ID }

// Find returns the number of a node, -1 if it cannot run the group.
func (b *Board) Find(nodeID string) int { return int(b.entryOf(nodeID)) }

// Clear takes all nodes off the board.
func (b *Board) Clear() {
	b.entries = b.entries[:0]
	for i := range b.byCandidate {
		b.byCandidate[i] = -1
	}
}

// Eligibility adds to classes which of the stage's computed classes can run the group at all. It reports whether a node can be
// refused for something that its class does not show.
func (b *Board) Eligibility(classes map[string]bool) (escaped bool) {
	b.filter.Eligibility(b.stage.classes, classes)
	return b.filter.Escaped()
}

// entryOf returns the entry of a node, -1 if it has none.
func (b *Board) entryOf(nodeID string) int32 {
	if c := b.stage.find(nodeID); c >= 0 {
		return b.byCandidate[c]
	}
	return -1
}

// admit scores an entry that is in no heap and appends it to its heap, without ordering that, if it may be used.
func (b *Board) admit(i int32) bool {
	e := &b.entries[i]
	c := &b.stage.nodes[e.cand]
	if e.gone || b.occupied(e) {
		return false
	}
	if written := b.contended(c, ""); written != "" {
		b.exhaust(e, written)
		return false
	}
	if fits, dimension := c.used.Add(b.ask.On(c.node)).Fits(c.total); !fits {
		b.exhaust(e, b.ask.Short(c.used, c.total, dimension))
		return false
	}
	sum, parts := b.score(e).sum()
	e.sum, e.parts = sum, uint8(parts)
	h := &b.buckets[e.bucket].heaps[e.parts]
	e.pos = int32(len(*h))
	*h = append(*h, i)
	return true
}

// occupied reports whether distinct_hosts forbids another allocation on the entry's node.
func (b *Board) occupied(e *entry) bool {
	return b.oneOfJob && b.stage.nodes[e.cand].jobAllocs > 0 || b.oneOfGroup && e.collisions > 0
}

// distinct reports whether distinct_hosts or distinct_property forbids another allocation on the entry's node.
func (b *Board) distinct(e *entry) bool { return b.buckets[e.bucket].full || b.occupied(e) }

// rescore puts an entry where it belongs after a change.
func (b *Board) rescore(i int32) {
	b.remove(i)
	if b.admit(i) {
		e := &b.entries[i]
		b.up(b.buckets[e.bucket].heaps[e.parts], int(e.pos))
	}
	b.refresh(b.entries[i].bucket)
	b.requeue(b.entries[i].bucket)
}

// refreshAll recomputes the boosts and best entries of all buckets.
func (b *Board) refreshAll() {
	for i := range b.buckets {
		b.reboost(int32(i))
	}
	b.requeueAll()
}

// reboost recomputes what the spreads add to the nodes of a bucket, and whether a distinct_property forbids them.
func (b *Board) reboost(i int32) {
	k := &b.buckets[i]
	k.boost, k.full = 0, false
	for j, p := range b.properties {
		k.boost += p.boost(k.values[j])
		k.full = k.full || p.full(k.values[j])
	}
	b.refresh(i)
}

// refresh finds a bucket's best entry again; the bucket is then to be requeued.
func (b *Board) refresh(i int32) {
	k := &b.buckets[i]
	b.tops[i], b.scores[i] = -1, math.Inf(-1)
	if k.full {
		return
	}
	for _, h := range k.heaps {
		if len(h) == 0 {
			continue
		}
		if s := b.final(h[0]); s > b.scores[i] || s == b.scores[i] && b.entries[h[0]].order < b.entries[b.tops[i]].order {
			b.tops[i], b.scores[i] = h[0], s
		}
	}
}

// final is the entry's score with its bucket's boost: the mean of the parts that are present.
func (b *Board) final(i int32) float64 {
	e := &b.entries[i]
	if b.hasSpreads {
		return (e.sum + b.buckets[e.bucket].boost) / float64(e.parts+1)
	}
	return e.sum / float64(e.parts)
}

// best returns the best entry of all, -1 if there is none.
func (b *Board) best() int32 {
	if len(b.queue) == 0 {
		return -1
	}
	return b.tops[b.queue[0]]
}
