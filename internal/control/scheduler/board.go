package scheduler

import (
	"encoding/binary"
	"math"

	"github.com/drover-project/drover"
)

// board ranks the nodes that can run a group. All are scored once; afterwards only what changed is scored again.
type board struct {
	*deps
	stage       *stage
	group       *drover.TaskGroup
	ask         *ask
	feasible    *feasibility
	desired     int // the group's count, for anti-affinity
	spreadFit   bool
	oneOfJob    bool // distinct_hosts of the job
	oneOfGroup  bool // distinct_hosts of the group
	affinities  []*drover.Affinity
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
	metric      *drover.AllocationMetric
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

// newBoard judges and scores every candidate for a group. kept are the job's allocations that stay.
func newBoard(d *deps, st *stage, g *drover.TaskGroup, kept []*drover.Allocation) *board {
	b := &board{
		deps: d, stage: st, group: g, desired: desiredCount(g), keys: map[string]int32{},
		ask:       newAsk(g, d.oversubscribed || g.Pool != nil),
		feasible:  newFeasibility(d.matcher, d.job, g, len(st.classes)),
		spreadFit: d.spreadFit || g.Pool != nil,
	}
	b.readPreferences()
	b.metric = &drover.AllocationMetric{
		NodesEvaluated: len(st.nodes), NodesInPool: st.inPool, NodePool: d.job.NodePool, NodesAvailable: st.available,
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
func (b *board) readPreferences() {
	b.affinities = append(append(b.affinities, b.job.Affinities...), b.group.Affinities...)
	constraints := append([]*drover.Constraint(nil), b.group.Constraints...)
	for _, t := range b.group.Tasks {
		b.affinities = append(b.affinities, t.Affinities...)
		constraints = append(constraints, t.Constraints...)
	}
	spreads := append(append([]*drover.Spread(nil), b.group.Spreads...), b.job.Spreads...)
	weights := 0.0
	for _, s := range spreads {
		weights += weightOf(s)
	}
	for _, s := range spreads {
		b.properties = append(b.properties, newSpread(s, b.desired, weightOf(s)/weights))
	}
	b.hasSpreads = len(spreads) > 0
	b.oneOfJob = b.readDistinct(b.job.Constraints)
	b.oneOfGroup = b.readDistinct(constraints)
}

func (b *board) readDistinct(cs []*drover.Constraint) (hosts bool) {
	for _, c := range cs {
		switch c.Operand {
		case distinctHosts:
			hosts = hosts || c.RTarget != "false"
		case distinctProperty:
			b.properties = append(b.properties, newDistinct(c))
		}
	}
	return hosts
}

// fill makes an entry for each feasible candidate.
func (b *board) fill() {
	b.entries = make([]entry, 0, len(b.stage.nodes))
	b.byCandidate = make([]int32, len(b.stage.nodes))
	for i := range b.stage.nodes {
		c := &b.stage.nodes[i]
		b.byCandidate[i] = -1
		if reason := b.feasible.check(c); reason != "" {
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
func (b *board) bucketOf(n *drover.Node) int32 {
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
func (b *board) countKept(kept []*drover.Allocation) {
	for _, a := range kept {
		if a.TaskGroup != b.group.Name {
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
func (b *board) keptNode(a *drover.Allocation) *drover.Node {
	if len(b.properties) == 0 {
		return nil
	}
	return b.snapshot.Node(a.NodeID)
}

// entryOf returns the entry of a node, -1 if it has none.
func (b *board) entryOf(nodeID string) int32 {
	if c := b.stage.find(nodeID); c >= 0 {
		return b.byCandidate[c]
	}
	return -1
}

// admit scores an entry that is in no heap and appends it to its heap, without ordering that, if it may be used.
func (b *board) admit(i int32) bool {
	e := &b.entries[i]
	c := &b.stage.nodes[e.cand]
	if e.gone || b.oneOfJob && c.jobAllocs > 0 || b.oneOfGroup && e.collisions > 0 {
		return false
	}
	if fits, dimension := c.used.Add(b.ask.on(c.node)).Fits(c.total); !fits {
		b.exhaust(e, dimension)
		return false
	}
	sum, parts := b.score(e).sum()
	e.sum, e.parts = sum, uint8(parts)
	h := &b.buckets[e.bucket].heaps[e.parts]
	e.pos = int32(len(*h))
	*h = append(*h, i)
	return true
}

// rescore puts an entry where it belongs after a change.
func (b *board) rescore(i int32) {
	b.remove(i)
	if b.admit(i) {
		e := &b.entries[i]
		b.up(b.buckets[e.bucket].heaps[e.parts], int(e.pos))
	}
	b.refresh(b.entries[i].bucket)
	b.requeue(b.entries[i].bucket)
}

// refreshAll recomputes the boosts and best entries of all buckets.
func (b *board) refreshAll() {
	for i := range b.buckets {
		b.reboost(int32(i))
	}
	b.requeueAll()
}

func (b *board) reboost(i int32) {
	k := &b.buckets[i]
	k.boost, k.full = 0, false
	for j, p := range b.properties {
		k.boost += p.boost(k.values[j])
		k.full = k.full || p.full(k.values[j])
	}
	b.refresh(i)
}

// refresh finds a bucket's best entry again; the bucket is then to be requeued.
func (b *board) refresh(i int32) {
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
func (b *board) final(i int32) float64 {
	e := &b.entries[i]
	if b.hasSpreads {
		return (e.sum + b.buckets[e.bucket].boost) / float64(e.parts+1)
	}
	return e.sum / float64(e.parts)
}

// best returns the best entry of all, -1 if there is none.
func (b *board) best() int32 {
	if len(b.queue) == 0 {
		return -1
	}
	return b.tops[b.queue[0]]
}

// take finds a node for one more allocation and takes what that holds. It returns nil if there is none.
func (b *board) take() (*candidate, *drover.AllocatedResources, *drover.AllocationMetric) {
	for {
		i := b.best()
		if i < 0 {
			return nil, nil, b.metric
		}
		e := &b.entries[i]
		c := &b.stage.nodes[e.cand]
		granted, lacking := b.grant(c)
		if lacking == "" {
			metric := b.explainChoice(i)
			b.occupy(i, granted)
			return c, granted, metric
		}
		e.gone = true
		b.exhaust(e, lacking)
		b.remove(i)
		b.refresh(e.bucket)
		b.requeue(e.bucket)
	}
}

// grant gives exact things, reading the node's allocations only if there are any to give.
func (b *board) grant(c *candidate) (*drover.AllocatedResources, string) {
	if !b.ask.wantsExact && c.node.NodeMaxAllocs == 0 {
		return b.ask.plain, ""
	}
	if c.hold == nil {
		c.hold = newHold(c.node, b.snapshot)
	}
	return b.ask.grant(b.deps, c.node, c.hold)
}

// occupy books an allocation on the entry's node.
func (b *board) occupy(i int32, granted *drover.AllocatedResources) {
	e := &b.entries[i]
	c := &b.stage.nodes[e.cand]
	c.used = c.used.Add(b.ask.on(c.node))
	c.jobAllocs++
	if c.hold != nil {
		c.hold.add(granted)
	}
	e.collisions++
	b.placed++
	b.rescore(i)
	b.recount(e.bucket, (*property).add)
}

// recount changes the counts of a bucket's values by one and refreshes the boosts which that changes.
func (b *board) recount(bucket int32, change func(*property, int32) bool) {
	if len(b.properties) == 0 {
		return
	}
	others := len(b.properties) > 1
	for j, p := range b.properties {
		others = change(p, b.buckets[bucket].values[j]) || others
	}
	if others {
		b.refreshAll()
	} else {
		b.reboost(bucket)
		b.requeue(bucket)
	}
}

// vacate takes back the count of an allocation that is about to be replaced, but not what it holds; stay undoes that.
func (b *board) vacate(a *drover.Allocation, delta int32) {
	i := b.entryOf(a.NodeID)
	if i < 0 {
		return
	}
	e := &b.entries[i]
	e.collisions += delta
	b.stage.nodes[e.cand].jobAllocs += delta
	b.rescore(i)
	if delta < 0 {
		b.recount(e.bucket, (*property).subtract)
	} else {
		b.recount(e.bucket, (*property).add)
	}
}

// penalise avoids nodes for the next placement, or ends that.
func (b *board) penalise(nodes []string, on bool) {
	for _, id := range nodes {
		if i := b.entryOf(id); i >= 0 && b.entries[i].penalised != on {
			b.entries[i].penalised = on
			b.rescore(i)
		}
	}
}
