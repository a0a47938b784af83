package constraint

import "github.com/drover-project/drover/internal/optional"

// Constraint limits which nodes may be used. Operands: =, !=, <, <=, >, >=, regexp, version, semver,
// set_contains(_all), set_contains_any, is_set, is_not_set, distinct_hosts, distinct_property.
type Constraint struct {
	LTarget string
	RTarget string
	Operand string
}

// Affinity prefers nodes; a negative weight avoids them.
type Affinity struct {
	LTarget string
	RTarget string
	Operand string
	Weight  int8 // -100..100, default 50
}

// Spread distributes allocations over the values of an attribute.
type Spread struct {
	Attribute    string
	Weight       int8 // 1..100, default 50
	SpreadTarget []*SpreadTarget
}

// SpreadTarget is the share of one value.
type SpreadTarget struct {
	Value   string
	Percent uint8
}

// CanonicalizeAffinities fills in the weight, of -100 to 100, and the operand.
func CanonicalizeAffinities(list []*Affinity) {
	for _, a := range list {
		if a != nil {
			optional.Default(&a.Weight, 50)
			optional.Default(&a.Operand, "=")
		}
	}
}

// Canonicalize fills in the operand.
func Canonicalize(list []*Constraint) {
	for _, c := range list {
		if c != nil {
			optional.Default(&c.Operand, "=")
		}
	}
}

// CanonicalizeSpreads fills in the weight, which counts relative to that of the other spreads.
func CanonicalizeSpreads(list []*Spread) {
	for _, s := range list {
		if s != nil {
			optional.Default(&s.Weight, 50)
		}
	}
}
