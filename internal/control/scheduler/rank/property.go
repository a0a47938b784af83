package rank

import (
	"cmp"
	"strconv"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/constraint"
	"github.com/drover-project/drover/internal/control/scheduler/feasible"
)

// property is a node attribute whose values bound or steer placements: of a spread, or of distinct_property.
type property struct {
	target string
	values map[string]int32
	counts []int // by value

	// Of a spread.
	weight  float64   // its share of all spreads' weights; 0 for distinct_property
	desired []float64 // by value; < 0 = not wanted; nil = evenly
	shares  map[string]float64
	rest    float64 // desired of values without a share of their own; < 0 = not wanted

	// Of an even spread: how many values have which count.
	histogram map[int]int
	low, high int

	limit int // of distinct_property; 0 for a spread
}

const missingValue = -1

// weightOf is a spread's weight; none means the default.
func weightOf(s *constraint.Spread) float64 { return float64(cmp.Or(s.Weight, 50)) }

// newSpread reads a spread; count is the group's, weight its share of all spreads' weights.
func newSpread(s *constraint.Spread, count int, weight float64) *property {
	p := &property{target: s.Attribute, values: map[string]int32{}, weight: weight, rest: -1}
	if len(s.SpreadTarget) == 0 {
		p.histogram = map[int]int{}
		return p
	}
	p.shares = map[string]float64{}
	left := 100.0
	for _, t := range s.SpreadTarget {
		share := float64(t.Percent)
		if t.Value == "*" {
			p.rest = share / 100 * float64(count)
		} else {
			p.shares[t.Value] = share / 100 * float64(count)
		}
		left -= share
	}
	if p.rest < 0 && left > 0 {
		p.rest = left / 100 * float64(count)
	}
	return p
}

// newDistinct reads a distinct_property constraint: at most RTarget (default 1) allocations a value.
func newDistinct(c *constraint.Constraint) *property {
	limit, err := strconv.Atoi(c.RTarget)
	if err != nil || limit < 1 {
		limit = 1
	}
	return &property{target: c.LTarget, values: map[string]int32{}, limit: limit}
}

// value returns the number of the node's value, making one for a value not seen before.
func (p *property) value(n *drover.Node) int32 {
	text, ok := feasible.Resolve(n, p.target)
	if !ok {
		return missingValue
	}
	v, seen := p.values[text]
	if !seen {
		v = int32(len(p.counts))
		p.values[text] = v
		p.counts = append(p.counts, 0)
		if p.histogram != nil {
			p.histogram[0]++
			p.low = 0
		}
		if p.shares != nil {
			share, wanted := p.shares[text]
			if !wanted {
				share = p.rest
			}
			p.desired = append(p.desired, share)
		}
	}
	return v
}

// add counts an allocation and reports whether the boosts of other values changed by it.
func (p *property) add(v int32) bool {
	if v == missingValue {
		return false
	}
	c := p.counts[v]
	p.counts[v]++
	if p.histogram == nil {
		return false
	}
	low, high := p.low, p.high
	p.histogram[c]--
	p.histogram[c+1]++
	p.high = max(p.high, c+1)
	if c == p.low && p.histogram[c] == 0 {
		p.low = c + 1
	}
	return low != p.low || high != p.high
}

// boost says how much the spread wants one more at the value: at most 1, usually at least -1, times its weight.
func (p *property) boost(v int32) float64 {
	if v == missingValue {
		return -p.weight
	}
	switch {
	case p.limit > 0:
		return 0
	case p.shares != nil:
		want := p.desired[v]
		if want <= 0 {
			return -p.weight
		}
		return (want - float64(p.counts[v]+1)) / want * p.weight
	case p.high == p.low:
		return 0
	}
	return (1 - 2*float64(p.counts[v]-p.low)/float64(p.high-p.low)) * p.weight
}

// full reports whether distinct_property forbids one more at the value.
func (p *property) full(v int32) bool {
	return p.limit > 0 && (v == missingValue || p.counts[v] >= p.limit)
}

// subtract takes back one add.
func (p *property) subtract(v int32) bool {
	if v == missingValue {
		return false
	}
	c := p.counts[v]
	p.counts[v]--
	if p.histogram == nil {
		return false
	}
	low, high := p.low, p.high
	p.histogram[c]--
	p.histogram[c-1]++
	p.low = min(p.low, c-1)
	if c == p.high && p.histogram[c] == 0 {
		p.high = c - 1
	}
	return low != p.low || high != p.high
}
