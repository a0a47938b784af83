package scheduler

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/constraint"
	"github.com/drover-project/drover/internal/control/scheduler/feasible"
)

// oracle is a deliberately dumb second placement: it looks at every node for every allocation and keeps no state but
// the list of what was placed before.
type oracle struct {
	w      *world
	job    *drover.Job
	group  *drover.TaskGroup
	placed []*drover.Allocation
}

func (o *oracle) on(node string) (n int) {
	for _, a := range o.placed {
		if a.NodeID == node {
			n++
		}
	}
	return n
}

func (o *oracle) at(attribute, value string) (n int) {
	for _, a := range o.placed {
		if v, _ := feasible.Resolve(o.w.nodes[a.NodeID], attribute); v == value {
			n++
		}
	}
	return n
}

func (o *oracle) after(n *drover.Node) drover.Capacity {
	c := o.w.Used(n.ID)
	for range o.on(n.ID) + 1 {
		c = c.Add(o.group.Asked())
	}
	return c
}

func (o *oracle) feasible(n *drover.Node) bool {
	m := feasible.NewMatcher()
	for _, c := range append(slices.Clone(o.job.Constraints), o.group.Constraints...) {
		switch c.Operand {
		case feasible.DistinctHosts:
			if o.on(n.ID) > 0 {
				return false
			}
		case feasible.DistinctProperty:
			v, ok := feasible.Resolve(n, c.LTarget)
			if !ok || o.at(c.LTarget, v) >= max(1, int(c.RTarget[0]-'0')) {
				return false
			}
		default:
			if !m.Node(n, c.LTarget, c.Operand, c.RTarget) {
				return false
			}
		}
	}
	ok, _ := o.after(n).Fits(n.Total())
	return ok && n.Ready()
}

func (o *oracle) score(n *drover.Node) float64 {
	after, total := o.after(n), n.Total()
	f := math.Pow(10, 1-float64(after.CPU)/float64(total.CPU)) + math.Pow(10, 1-float64(after.MemoryMB)/float64(total.MemoryMB))
	scores := []float64{math.Min(math.Max(20-f, 0), 18) / 18}
	if k := o.on(n.ID); k > 0 {
		scores = append(scores, -float64(k+1)/float64(*o.group.Count))
	}
	if a := o.affinity(n); a != 0 {
		scores = append(scores, a)
	}
	if len(o.job.Spreads) > 0 {
		scores = append(scores, o.spread(n))
	}
	sum := 0.0
	for _, s := range scores {
		sum += s
	}
	return sum / float64(len(scores))
}

func (o *oracle) affinity(n *drover.Node) float64 {
	got, all := 0.0, 0.0
	for _, a := range o.job.Affinities {
		all += math.Abs(float64(a.Weight))
		if feasible.NewMatcher().Node(n, a.LTarget, a.Operand, a.RTarget) {
			got += float64(a.Weight)
		}
	}
	if all == 0 {
		return 0
	}
	return got / all
}

func (o *oracle) spread(n *drover.Node) float64 {
	total, weights := 0.0, 0.0
	for _, s := range o.job.Spreads {
		weights += float64(s.Weight)
	}
	for _, s := range o.job.Spreads {
		w := float64(s.Weight) / weights
		v, ok := feasible.Resolve(n, s.Attribute)
		if !ok {
			total -= w
			continue
		}
		here := float64(o.at(s.Attribute, v))
		if len(s.SpreadTarget) > 0 {
			total += w * o.target(s, v, here)
			continue
		}
		low, high := math.Inf(1), math.Inf(-1)
		for _, other := range o.w.nodes {
			if o.couldEver(other) {
				if ov, ok := feasible.Resolve(other, s.Attribute); ok {
					k := float64(o.at(s.Attribute, ov))
					low, high = min(low, k), max(high, k)
				}
			}
		}
		if high > low {
			total += w * (1 - 2*(here-low)/(high-low))
		}
	}
	return total
}

func (o *oracle) target(s *constraint.Spread, v string, here float64) float64 {
	left := 100.0
	for _, t := range s.SpreadTarget {
		left -= float64(t.Percent)
	}
	percent := left
	for _, t := range s.SpreadTarget {
		if t.Value == v {
			percent = float64(t.Percent)
		}
	}
	want := percent / 100 * float64(*o.group.Count)
	if want <= 0 {
		return -1
	}
	return (want - here - 1) / want
}

// couldEver reports whether the node passes the constraints, whatever is placed.
func (o *oracle) couldEver(n *drover.Node) bool {
	for _, c := range o.job.Constraints {
		if !feasible.NewMatcher().Node(n, c.LTarget, c.Operand, c.RTarget) {
			return false
		}
	}
	return n.Ready()
}

// drawCase makes a world and a job that uses whatever the draw says.
func drawCase(t *rapid.T) (*world, *drover.Job) {
	w := newWorld()
	nodes := rapid.IntRange(1, 12).Draw(t, "nodes")
	for i := range nodes {
		w.addNode(fmt.Sprintf("n%02d", i), func(n *drover.Node) {
			n.NodeResources.Cpu.CpuShares = int64(rapid.IntRange(5, 40).Draw(t, "cpu") * 100)
			n.NodeResources.Memory.MemoryMB = int64(rapid.IntRange(4, 40).Draw(t, "mem") * 100)
			n.Meta["zone"] = rapid.SampledFrom([]string{"z1", "z2", "z3"}).Draw(t, "zone")
			if r := rapid.SampledFrom([]string{"", "r1", "r2", "r3", "r4"}).Draw(t, "rack"); r != "" {
				n.Meta["rack"] = r
			}
		})
	}
	j := newJob("job", drover.JobTypeBatch, rapid.IntRange(1, 20).Draw(t, "count"))
	j.TaskGroups[0].Tasks[0].Resources.CPU = rapid.IntRange(1, 10).Draw(t, "ask cpu") * 100
	if rapid.Bool().Draw(t, "affinity") {
		j.Affinities = []*constraint.Affinity{
			{LTarget: "${meta.zone}", RTarget: "z1", Operand: "=", Weight: 50},
			{LTarget: "${meta.rack}", RTarget: "r2", Operand: "=", Weight: -30},
		}
	}
	if rapid.Bool().Draw(t, "even spread") {
		j.Spreads = append(j.Spreads, &constraint.Spread{Attribute: "${meta.rack}", Weight: 70})
	}
	if rapid.Bool().Draw(t, "target spread") {
		j.Spreads = append(j.Spreads, &constraint.Spread{Attribute: "${meta.zone}", Weight: 40, SpreadTarget: []*constraint.SpreadTarget{
			{Value: "z1", Percent: 60}, {Value: "z2", Percent: 40},
		}})
	}
	for _, c := range []*constraint.Constraint{
		{Operand: feasible.DistinctHosts},
		{Operand: feasible.DistinctProperty, LTarget: "${meta.rack}", RTarget: "3"},
		{LTarget: "${meta.zone}", Operand: "!=", RTarget: "z3"},
	} {
		if rapid.IntRange(0, 3).Draw(t, c.Operand) == 0 {
			j.Constraints = append(j.Constraints, c)
		}
	}
	w.putJob(j)
	return w, j
}

// TestPlacementAgainstOracle replays each plan in order and asserts that every choice was a best one, and that what
// was not placed had no node.
func TestPlacementAgainstOracle(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w, j := drawCase(t)
		out := Schedule(Input{
			Eval: &drover.Evaluation{ID: "e", Namespace: "default", JobID: j.ID}, Snapshot: w, Now: w.now,
			Seed: rapid.Uint64().Draw(t, "seed"),
		})
		var placed []*drover.Allocation
		for _, allocs := range out.Plan.NodeAllocation {
			placed = append(placed, allocs...)
		}
		slices.SortFunc(placed, func(x, y *drover.Allocation) int { return cmp.Compare(x.Index(), y.Index()) })
		o := &oracle{w: w, job: j, group: j.TaskGroups[0]}
		for _, a := range placed {
			require.True(t, o.feasible(w.nodes[a.NodeID]), "%s on %s", a.Name, a.NodeID)
			mine := o.score(w.nodes[a.NodeID])
			for _, id := range w.order {
				if n := w.nodes[id]; o.feasible(n) {
					require.LessOrEqual(t, o.score(n), mine+1e-9, "%s went to %s, %s is better", a.Name, a.NodeID, id)
				}
			}
			require.InDelta(t, mine, ownScore(a), 1e-9)
			o.placed = append(o.placed, a)
		}
		if missing := *j.TaskGroups[0].Count - len(placed); missing > 0 {
			for _, id := range w.order {
				require.False(t, o.feasible(w.nodes[id]), "%s was free", id)
			}
			require.Equal(t, missing-1, out.Eval.FailedTGAllocs["g"].CoalescedFailures)
		}
	})
}

func ownScore(a *drover.Allocation) float64 {
	for _, s := range a.Metrics.ScoreMetaData {
		if s.NodeID == a.NodeID {
			return s.NormScore
		}
	}
	return math.NaN()
}
