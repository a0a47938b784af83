package scaler

import (
	"strconv"
	"strings"

	"github.com/drover-project/drover/constraint"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/validation"
)

// satisfies reports whether a machine of the offering will meet the constraint. What the offering does not tell of
// itself is taken as unset, and versions as met: the scheduler has the last word.
func satisfies(o *fleet.Offering, c *constraint.Constraint) bool {
	switch c.Operand {
	case "distinct_hosts", "distinct_property", "version", "semver":
		return true
	}
	value, set := attribute(o, c.LTarget)
	switch c.Operand {
	case "is_set":
		return set
	case "is_not_set":
		return !set
	case "", "=", "==", "is":
		return set && value == c.RTarget
	case "!=", "not":
		return value != c.RTarget
	case "regexp":
		re, err := validation.CompilePattern(c.RTarget)
		return set && err == nil && re.MatchString(value)
	case "set_contains", "set_contains_all":
		return set && contains(value, c.RTarget, true)
	case "set_contains_any":
		return set && contains(value, c.RTarget, false)
	case "<", "<=", ">", ">=":
		return set && ordered(value, c.RTarget, c.Operand)
	}
	return true
}

// attribute resolves one side of a constraint for nodes of the offering, as Nomad does for a node. "${…}" names an attribute,
// other text stands for itself. set is false if the nodes will not have it, as far as known.
func attribute(o *fleet.Offering, target string) (value string, set bool) {
	name, ok := strings.CutPrefix(target, "${")
	if !ok {
		return target, true
	}
	name = strings.TrimSuffix(name, "}")
	switch name {
	case "node.datacenter":
		value, set = o.Attributes[name]
		return value, set
	case "attr.platform.zone":
		return o.Zone, true
	case "attr.platform.type":
		return o.Type, true
	case "attr.platform.market":
		return o.Market, true
	}
	if value, set = o.Attributes[name]; set {
		return value, true
	}
	short := strings.TrimPrefix(name, "attr.")
	if value, set = o.Attributes[short]; !set && short == "kernel.name" {
		return "linux", true
	}
	return value, set
}

// contains compares two lists with commas between, as set_contains does if all of want must be there, else as
// set_contains_any.
func contains(have, want string, all bool) bool {
	set := map[string]bool{}
	for s := range strings.SplitSeq(have, ",") {
		set[strings.TrimSpace(s)] = true
	}
	for s := range strings.SplitSeq(want, ",") {
		if set[strings.TrimSpace(s)] != all {
			return !all
		}
	}
	return all
}

// ordered compares two values: as numbers if both are, else as texts, which is Nomad's rule for <, <=, > and >=.
func ordered(a, b, operand string) bool {
	x, errA := strconv.ParseFloat(a, 64)
	y, errB := strconv.ParseFloat(b, 64)
	less, equal := a < b, a == b
	if errA == nil && errB == nil {
		less, equal = x < y, x == y
	}
	switch operand {
	case "<":
		return less
	case "<=":
		return less || equal
	case ">":
		return !less && !equal
	}
	return !less
}
