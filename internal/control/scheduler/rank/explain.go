package rank

import (
	"cmp"
	"maps"
	"slices"

	"github.com/drover-project/drover"
)

// A group's first placements carry the scores of the best nodes. Later ones carry the numbers and their own score only:
// a metric travels through the log and stays in memory with each of a million allocations.
const (
	explainedPlacements = 8
	explainedNodes      = 5
)

// filtered counts a node that cannot run the group at all, under the reason and its class.
func (b *Board) filtered(c *candidate, reason string) {
	m := b.Metric
	m.NodesFiltered++
	m.ConstraintFiltered = count(m.ConstraintFiltered, reason)
	if c.node.NodeClass != "" {
		m.ClassFiltered = count(m.ClassFiltered, c.node.NodeClass)
	}
}

// exhaust counts a node that has no room left, once for a board, under the dimension that was refused first.
func (b *Board) exhaust(e *entry, dimension string) {
	if e.exhausted {
		return
	}
	e.exhausted = true
	m := b.Metric
	m.NodesExhausted++
	m.DimensionExhausted = count(m.DimensionExhausted, dimension)
	if class := b.stage.nodes[e.cand].node.NodeClass; class != "" {
		m.ClassExhausted = count(m.ClassExhausted, class)
	}
}

// count adds one under the key, and makes the map at its first use: most metrics have none.
func count(m map[string]int, key string) map[string]int {
	if m == nil {
		m = map[string]int{}
	}
	m[key]++
	return m
}

// metricNow copies the metric as it stands. What is filtered does not change after fill.
func (b *Board) metricNow() *drover.AllocationMetric {
	m := new(*b.Metric)
	m.DimensionExhausted, m.ClassExhausted = maps.Clone(m.DimensionExhausted), maps.Clone(m.ClassExhausted)
	return m
}

// briefMetric returns the numbers and the score of the chosen node alone.
func (b *Board) briefMetric(i int32) *drover.AllocationMetric {
	m := b.Metric
	return &drover.AllocationMetric{
		NodesEvaluated: m.NodesEvaluated, NodesFiltered: m.NodesFiltered, NodesInPool: m.NodesInPool, NodePool: m.NodePool,
		NodesExhausted: m.NodesExhausted,
		ScoreMetaData:  []*drover.NodeScoreMeta{{NodeID: b.stage.nodes[b.entries[i].cand].node.ID, NormScore: b.final(i)}},
	}
}

// explainChoice returns the metric of an allocation that goes to the entry's node.
func (b *Board) explainChoice(i int32) *drover.AllocationMetric {
	if b.placed >= explainedPlacements {
		return b.briefMetric(i)
	}
	m := b.metricNow()
	seen := b.leaders()
	if !slices.Contains(seen, i) {
		seen = append(seen, i)
	}
	slices.SortFunc(seen, func(x, y int32) int {
		return cmp.Or(cmp.Compare(b.final(y), b.final(x)), cmp.Compare(b.entries[x].order, b.entries[y].order))
	})
	for _, e := range seen[:min(len(seen), explainedNodes)] {
		m.ScoreMetaData = append(m.ScoreMetaData, b.meta(e))
	}
	return m
}

// leaders returns entries among which are the best ones: the top of each bucket's heaps, and the next below them if
// there are few buckets.
func (b *Board) leaders() []int32 {
	depth := 1
	if len(b.buckets) < explainedNodes {
		depth = 1<<explainedNodes - 1
	}
	var out []int32
	for _, k := range b.buckets {
		if k.full {
			continue
		}
		for _, h := range k.heaps {
			out = append(out, h[:min(len(h), depth)]...)
		}
	}
	return out
}

// meta returns the parts of an entry's score under Nomad's names. Parts that are zero did not count and are left out.
func (b *Board) meta(i int32) *drover.NodeScoreMeta {
	e := &b.entries[i]
	s := b.score(e)
	m := &drover.NodeScoreMeta{
		NodeID: b.stage.nodes[e.cand].node.ID, NormScore: b.final(i), Scores: map[string]float64{"binpack": s.fit},
	}
	for name, v := range map[string]float64{
		"job-anti-affinity": s.anti, "node-reschedule-penalty": s.penalty, "node-affinity": s.affinity, "devices": s.devices,
		"allocation-spread": b.buckets[e.bucket].boost,
	} {
		if v != 0 {
			m.Scores[name] = v
		}
	}
	return m
}

// Taken counts the nodes that only distinct_hosts or distinct_property refuse.
func (b *Board) Taken() int {
	n := 0
	for i := range b.entries {
		if e := &b.entries[i]; !e.exhausted && b.distinct(e) {
			n++
		}
	}
	return n
}
