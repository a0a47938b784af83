package feasible

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/hashicorp/go-version"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/constraint"
	"github.com/drover-project/drover/internal/validation"
)

// Operands that are not decided by looking at one node: the ranking counts what runs elsewhere for them.
const (
	DistinctHosts    = "distinct_hosts"
	DistinctProperty = "distinct_property"
)

// Matcher decides the operands of constraints and affinities. It remembers compiled expressions, so one serves a whole
// evaluation; it is not safe for concurrent use.
type Matcher struct {
	regexps  map[string]*regexp.Regexp
	versions map[string]version.Constraints
}

// NewMatcher returns a matcher that has seen nothing yet.
func NewMatcher() *Matcher {
	return &Matcher{regexps: map[string]*regexp.Regexp{}, versions: map[string]version.Constraints{}}
}

// Node reports whether a node meets a constraint or an affinity. Both sides may be targets (Resolve).
func (m *Matcher) Node(n *drover.Node, left, operand, right string) bool {
	l, lok := Resolve(n, left)
	r, rok := Resolve(n, right)
	return m.match(operand, l, r, lok, rok)
}

// match decides an operand. An absent value differs from every other, and is neither less nor greater.
func (m *Matcher) match(operand, l, r string, lok, rok bool) bool {
	switch operand {
	case DistinctHosts, DistinctProperty:
		return true
	case "is_set":
		return lok
	case "is_not_set":
		return !lok
	case "!=", "not":
		return lok != rok || l != r
	}
	if !lok || !rok {
		return false
	}
	switch operand {
	case "=", "==", "is", "":
		return l == r
	case "<", "<=", ">", ">=":
		return ordered(operand, compare(l, r))
	case "version":
		return m.version(l, r)
	case "semver":
		return semver(l, r)
	case "regexp":
		return m.regexp(l, r)
	case "set_contains", "set_contains_all":
		return contains(l, r, true)
	case "set_contains_any":
		return contains(l, r, false)
	}
	return false
}

// ordered reports whether the result c of a comparison (below, at or above 0) meets the operand. An unknown operand
// meets nothing.
func ordered(operand string, c int) bool {
	switch operand {
	case "<":
		return c < 0
	case "<=":
		return c <= 0
	case ">":
		return c > 0
	case ">=":
		return c >= 0
	case "=", "==", "":
		return c == 0
	case "!=":
		return c != 0
	}
	return false
}

// compare orders as integers if both are, else as numbers if both are, else as text.
func compare(l, r string) int {
	if li, err := strconv.ParseInt(l, 10, 64); err == nil {
		if ri, err := strconv.ParseInt(r, 10, 64); err == nil {
			return three(li < ri, li > ri)
		}
	}
	if lf, err := strconv.ParseFloat(l, 64); err == nil {
		if rf, err := strconv.ParseFloat(r, 64); err == nil {
			return three(lf < rf, lf > rf)
		}
	}
	return strings.Compare(l, r)
}

// three makes the result of a comparison: -1, 0 or 1.
func three(less, greater bool) int {
	switch {
	case less:
		return -1
	case greater:
		return 1
	}
	return 0
}

// version reports whether l is a version within the constraint r, such as ">= 1.2, < 2.0". Pre-releases match only a
// constraint that names one, unlike with semver. Constraints are parsed once for a matcher.
func (m *Matcher) version(l, r string) bool {
	c, seen := m.versions[r]
	if !seen {
		c, _ = version.NewConstraint(r) // one that cannot be read is nil and matches nothing
		m.versions[r] = c
	}
	v, err := version.NewVersion(l)
	return c != nil && err == nil && c.Check(v)
}

// semver compares strictly by precedence: a pre-release is less than its release and needs no special mention.
func semver(l, r string) bool {
	v, err := version.NewSemver(l)
	if err != nil {
		return false
	}
	for part := range strings.SplitSeq(r, ",") {
		part = strings.TrimSpace(part)
		i := strings.IndexFunc(part, func(c rune) bool { return !strings.ContainsRune("<>=!", c) })
		if i < 0 {
			return false
		}
		want, err := version.NewSemver(strings.TrimSpace(part[i:]))
		if err != nil || !ordered(part[:i], v.Compare(want)) {
			return false
		}
	}
	return true
}

// regexp reports whether the pattern r occurs in l. Patterns are compiled once for a matcher.
func (m *Matcher) regexp(l, r string) bool {
	re, seen := m.regexps[r]
	if !seen {
		re, _ = validation.CompilePattern(r) // one that cannot be read is nil and matches nothing
		m.regexps[r] = re
	}
	return re != nil && re.MatchString(l)
}

// contains reports whether the comma separated set l has all, or any, of r.
func contains(l, r string, all bool) bool {
	set := map[string]bool{}
	for v := range strings.SplitSeq(l, ",") {
		set[strings.TrimSpace(v)] = true
	}
	for v := range strings.SplitSeq(r, ",") {
		if set[strings.TrimSpace(v)] != all {
			return !all
		}
	}
	return all
}

// constraintText is how a constraint stands in explanations.
func constraintText(c *constraint.Constraint) string {
	return strings.TrimSpace(c.LTarget + " " + c.Operand + " " + c.RTarget)
}
