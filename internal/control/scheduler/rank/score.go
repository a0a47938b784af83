package rank

import (
	"math"

	"github.com/drover-project/drover"
)

// fit says how well a node is used with this much on it: 0 to 1. Binpack likes full nodes, spread empty ones.
func fit(used, total drover.Capacity, spread bool) float64 {
	sum := math.Exp(math.Ln10*free(used.CPU, total.CPU)) + math.Exp(math.Ln10*free(used.MemoryMB, total.MemoryMB))
	score := 20 - sum
	if spread {
		score = sum - 2
	}
	return min(max(score, 0), 18) / 18
}

// free is the free share from 0 to 1, and below 0 if more is used than there is. A node that has nothing of it has
// nothing free.
func free(used, total int64) float64 {
	if total <= 0 {
		return 0
	}
	return 1 - float64(used)/float64(total)
}

// score is what speaks for a node. Its mean over the parts that are present ranks it.
type score struct {
	fit      float64
	anti     float64 // present if not 0
	penalty  float64 // present if not 0
	affinity float64 // present if not 0
	devices  float64 // present if not 0
}

// sum returns the sum of the present parts, and their number.
func (s score) sum() (float64, int) {
	n := 1
	for _, v := range [...]float64{s.anti, s.penalty, s.affinity, s.devices} {
		if v != 0 {
			n++
		}
	}
	return s.fit + s.anti + s.penalty + s.affinity + s.devices, n
}

// affinities returns how much the node is liked: the weights that match over all weights.
func (b *Board) affinityOf(n *drover.Node) float64 {
	if len(b.affinities) == 0 {
		return 0
	}
	got, all := 0.0, 0.0
	for _, a := range b.affinities {
		all += math.Abs(float64(a.Weight))
		if b.Matcher.Node(n, a.LTarget, a.Operand, a.RTarget) {
			got += float64(a.Weight)
		}
	}
	if all == 0 {
		return 0
	}
	return got / all
}

// score computes all parts for an entry as it stands.
func (b *Board) score(e *entry) score {
	c := &b.stage.nodes[e.cand]
	s := score{fit: fit(c.used.Add(b.ask.On(c.node)), c.total, b.SpreadFit), affinity: e.affinity}
	if e.collisions > 0 {
		s.anti = -float64(e.collisions+1) / float64(max(b.desired, 1))
	}
	if e.penalised {
		s.penalty = -1
	}
	if b.ask.Liking {
		_, s.devices = b.ask.Devices(c.node, b.holdOf(c), b.Matcher)
	}
	return s
}
