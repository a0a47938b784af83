package constraint

import (
	"fmt"
	"strings"

	"github.com/drover-project/drover/internal/validation"
)

// knownOperand reports whether constraints know it.
func knownOperand(name string) bool {
	switch name {
	case "=", "==", "is", "!=", "not", "<", "<=", ">", ">=", "version", "semver", "regexp", "set_contains", "set_contains_all",
		"set_contains_any", "is_set", "is_not_set", "distinct_hosts", "distinct_property":
		return true
	}
	return false
}

// Validate checks operands and operands' values as far as no node is needed for it. "=" and "!=" may compare
// with the empty text. Versions are intake's to check.
func Validate(v *validation.Report, at string, list []*Constraint) {
	for i, c := range list {
		where := fmt.Sprintf("%s.Constraints[%d]", at, i)
		if c == nil {
			v.Addf(where, "must not be null")
			continue
		}
		v.Interpolated(where+".LTarget", c.LTarget)
		v.Interpolated(where+".RTarget", c.RTarget)
		v.Check(knownOperand(c.Operand), where+".Operand", "unknown operand %q", c.Operand)
		switch c.Operand {
		case "regexp":
			if _, err := validation.CompilePattern(c.RTarget); err != nil {
				v.Addf(where+".RTarget", "is no regular expression: %v", err)
			}
		case "distinct_hosts":
		case "is_set", "is_not_set":
			v.Check(c.RTarget == "", where+".RTarget", "must be empty for %s", c.Operand)
			v.Check(c.LTarget != "", where+".LTarget", "must be set")
		default:
			v.Check(c.LTarget != "", where+".LTarget", "must be set")
			v.Check(c.RTarget != "" || c.Operand == "distinct_property" || c.Operand == "=" || c.Operand == "!=", where+".RTarget", "must be set")
		}
	}
}

// ValidateAffinities checks operands and weights. A negative weight is an aversion; the distinct operands only
// constrain.
func ValidateAffinities(v *validation.Report, at string, list []*Affinity) {
	for i, a := range list {
		where := fmt.Sprintf("%s.Affinities[%d]", at, i)
		if a == nil {
			v.Addf(where, "must not be null")
			continue
		}
		v.Check(knownOperand(a.Operand) && !strings.HasPrefix(a.Operand, "distinct_"), where+".Operand", "unknown operand %q", a.Operand)
		v.Check(a.Weight >= -100 && a.Weight <= 100 && a.Weight != 0, where+".Weight", "must be from -100 to 100 and not 0, got %d", a.Weight)
	}
}

// ValidateSpreads checks weights and targets. Targets may leave a rest, which all other values share.
func ValidateSpreads(v *validation.Report, at string, list []*Spread) {
	for i, s := range list {
		where := fmt.Sprintf("%s.Spreads[%d]", at, i)
		if s == nil {
			v.Addf(where, "must not be null")
			continue
		}
		v.Check(s.Attribute != "", where+".Attribute", "must be set")
		v.Check(s.Weight >= 1 && s.Weight <= 100, where+".Weight", "must be from 1 to 100, got %d", s.Weight)
		sum := 0
		for _, t := range s.SpreadTarget {
			if t != nil {
				sum += int(t.Percent)
			}
		}
		v.Check(sum <= 100, where+".SpreadTarget", "the percents add up to %d, more than 100", sum)
	}
}
