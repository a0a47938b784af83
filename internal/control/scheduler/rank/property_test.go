package rank

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/constraint"
)

func rack(name string) *drover.Node { return &drover.Node{Meta: map[string]string{"rack": name}} }

func TestFitLikesFullOrEmptyNodes(t *testing.T) {
	t.Parallel()
	total := drover.Capacity{CPU: 1000, MemoryMB: 1000}
	half := drover.Capacity{CPU: 500, MemoryMB: 500}
	require.InDelta(t, 1, fit(total, total, false), 1e-9)
	require.InDelta(t, 0, fit(drover.Capacity{}, total, false), 1e-9)
	require.InDelta(t, 1, fit(drover.Capacity{}, total, true), 1e-9)
	require.Greater(t, fit(half, total, false), 0.5, "binpack")
	require.Less(t, fit(half, total, true), 0.5, "spread")
	require.InDelta(t, 1, fit(half, drover.Capacity{}, false), 1e-9, "a node without anything counts as full")
}

// The mean is over the parts that are there: one that is 0 is not.
func TestTheSumCountsItsParts(t *testing.T) {
	t.Parallel()
	sum, parts := score{fit: 0.5}.sum()
	require.InDelta(t, 0.5, sum, 1e-9)
	require.Equal(t, 1, parts)
	sum, parts = score{fit: 0.5, anti: -1, penalty: -1, affinity: 0.25}.sum()
	require.InDelta(t, -1.25, sum, 1e-9)
	require.Equal(t, 4, parts)
}

func TestASpreadWithTargets(t *testing.T) {
	t.Parallel()
	p := newSpread(&constraint.Spread{Attribute: "${meta.rack}", SpreadTarget: []*constraint.SpreadTarget{
		{Value: "a", Percent: 50}, {Value: "b", Percent: 30},
	}}, 10, 1)
	a, b, other := p.value(rack("a")), p.value(rack("b")), p.value(rack("c"))
	require.InDelta(t, 0.8, p.boost(a), 1e-9, "four of five are wanted after this one")
	require.InDelta(t, 2.0/3, p.boost(b), 1e-9)
	require.InDelta(t, 0.5, p.boost(other), 1e-9, "what no target has shares the rest")
	require.InDelta(t, -1, p.boost(p.value(&drover.Node{})), 1e-9, "without the attribute")
	for range 6 {
		require.False(t, p.add(a), "other values are not concerned")
	}
	require.Negative(t, p.boost(a), "too many")
}

func TestDistinctProperty(t *testing.T) {
	t.Parallel()
	for limit, most := range map[string]int{"": 1, "2": 2, "x": 1, "0": 1} {
		p := newDistinct(&constraint.Constraint{LTarget: "${meta.rack}", RTarget: limit})
		a := p.value(rack("a"))
		for range most {
			require.False(t, p.full(a), limit)
			p.add(a)
		}
		require.True(t, p.full(a), limit)
		require.False(t, p.full(p.value(rack("b"))))
		require.True(t, p.full(p.value(&drover.Node{})), "a node without the property is refused")
		require.Zero(t, p.boost(a))
		p.subtract(a)
		require.False(t, p.full(a), limit)
	}
}

// An even spread knows its fewest and most at every moment, whatever is added and taken back, and tells when they move.
func TestAnEvenSpreadKnowsItsBounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := newSpread(&constraint.Spread{Attribute: "${meta.rack}"}, 10, 1)
		var values []int32
		for _, name := range []string{"a", "b", "c"} {
			values = append(values, p.value(rack(name)))
		}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			v := values[rapid.IntRange(0, 2).Draw(t, "value")]
			low, high := p.low, p.high
			moved := false
			if p.counts[v] > 0 && rapid.Bool().Draw(t, "back") {
				moved = p.subtract(v)
			} else {
				moved = p.add(v)
			}
			least, most := p.counts[0], p.counts[0]
			for _, c := range p.counts {
				least, most = min(least, c), max(most, c)
			}
			require.Equal(t, least, p.low)
			require.Equal(t, most, p.high)
			require.Equal(t, low != p.low || high != p.high, moved)
			for _, x := range values {
				require.LessOrEqual(t, p.boost(x), 1.0)
				require.GreaterOrEqual(t, p.boost(x), -1.0)
			}
		}
	})
}

func TestTheCheapestVictimsGo(t *testing.T) {
	t.Parallel()
	of := func(priorities ...int) (out []*drover.Allocation) {
		for _, p := range priorities {
			out = append(out, &drover.Allocation{Job: &drover.Job{Priority: p}})
		}
		return out
	}
	require.True(t, cheaper(of(), of(1)), "nobody has to go")
	require.True(t, cheaper(of(10, 10, 10), of(20)), "the highest priority counts first")
	require.True(t, cheaper(of(20), of(20, 10)), "then their number")
	require.False(t, cheaper(of(20), of(20)))
}
