package leases

import (
	"slices"

	"github.com/drover-project/drover"
)

// Holder is a live incarnation, and how it stands with one pool.
type Holder struct {
	Incarnation uint64
	Held        int // unclaimed runners of the pool that are leased to it
	Wanted      int // claims that wait for one there
}

// lacks is how many waiting claims have no leased runner.
func (h Holder) lacks() int { return max(0, h.Wanted-h.Held) }

// Demand is how many runners a pool needs beside its size, so that all claims which wait get one.
func Demand(holders []Holder, size int) int {
	held, lacked := 0, 0
	for _, h := range holders {
		held += h.Held
		lacked += h.lacks()
	}
	if lacked == 0 {
		return 0
	}
	return max(0, held+lacked-size)
}

// WithDemand returns a copy of the groups whose warm pools have the demand, if it differs from what they have.
func WithDemand(groups []*drover.TaskGroup, demand int) (out []*drover.TaskGroup, changed bool) {
	out = slices.Clone(groups)
	for i, g := range out {
		if g.Pool == nil || g.Pool.Demand == demand {
			continue
		}
		group, pool := *g, *g.Pool
		pool.Demand = demand
		group.Pool = &pool
		out[i], changed = &group, true
	}
	return out, changed
}

// Choose says who gets the next runner of the pool: the holder with the most waiting claims that have no runner, else the one
// that holds the fewest. Among equals it is the oldest incarnation. It returns its place in the list, -1 for an empty one.
func Choose(holders []Holder) int {
	best := -1
	for i, h := range holders {
		if best < 0 || before(h, holders[best]) {
			best = i
		}
	}
	return best
}

func before(h, than Holder) bool {
	switch {
	case h.lacks() != than.lacks():
		return h.lacks() > than.lacks()
	case h.Held != than.Held:
		return h.Held < than.Held
	}
	return h.Incarnation < than.Incarnation
}
