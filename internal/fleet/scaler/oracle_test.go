package scaler

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
)

// oracle finds the cheapest machines for the pieces by trying everything: branch and bound.
type oracle struct {
	types  []fleet.InstanceType
	pieces []drover.Capacity
	best   float64
}

type bin struct {
	free drover.Capacity
}

func (o *oracle) try(k int, bins []bin, cost float64) {
	if cost >= o.best-1e-9 {
		return
	}
	if k == len(o.pieces) {
		o.best = cost
		return
	}
	for b := range bins {
		if ok, _ := o.pieces[k].Fits(bins[b].free); ok {
			was := bins[b].free
			bins[b].free = was.Sub(o.pieces[k])
			o.try(k+1, bins, cost)
			bins[b].free = was
		}
	}
	for _, t := range o.types {
		if ok, _ := o.pieces[k].Fits(t.Capacity); ok {
			o.try(k+1, append(bins, bin{t.Capacity.Sub(o.pieces[k])}), cost+t.Price)
		}
	}
}

// Small cases cost at most 1.15 times the exact optimum on average, and 1.5 times at worst.
func TestPurchasesAreCloseToTheOptimum(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 1))
	sum, worst, n := 0.0, 0.0, 300
	for range n {
		p := policy()
		for i := range p.Types {
			p.Types[i].Price *= 0.8 + 0.4*rng.Float64()
			p.Types[i].Capacity.DiskMB = 50000
		}
		o := oracle{types: p.Types, best: math.Inf(1)}
		var demand []fleet.DemandClass
		for range 1 + rng.IntN(3) {
			each := drover.Capacity{CPU: int64(1+rng.IntN(16)) * 250, MemoryMB: int64(1+rng.IntN(16)) * 256}
			count := 1 + rng.IntN(3)
			demand = append(demand, fleet.DemandClass{Name: string(rune('a' + len(demand))), Each: each, Count: count, Priority: 50, Since: start})
			for range count {
				o.pieces = append(o.pieces, each)
			}
		}
		o.try(0, nil, 0)
		cost := 0.0
		out := Decide(input(p, demand...))
		for _, a := range out.Actions {
			cost += float64(a.Count) * a.Buys.Price
		}
		for _, w := range out.Waiting {
			require.Equal(t, w.Count, w.Bought, w.Reason)
		}
		require.GreaterOrEqual(t, cost, o.best-1e-9)
		sum += cost / o.best
		worst = max(worst, cost/o.best)
	}
	t.Logf("%.3f on average, %.3f at worst", sum/float64(n), worst)
	require.LessOrEqual(t, sum/float64(n), 1.15)
	require.LessOrEqual(t, worst, 1.5)
}
