package view

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/cli/term"
)

// ExplainUnplaced prints for each group how many allocations could not be placed, and why. CoalescedFailures counts
// those after the first, whose reasons the scheduler did not find out again.
func ExplainUnplaced(w io.Writer, indent string, failed map[string]*drover.AllocationMetric) {
	for _, group := range slices.Sorted(maps.Keys(failed)) {
		m := failed[group]
		fmt.Fprintf(w, "%sGroup %q: %s not placed\n", indent, group, term.Plural(m.CoalescedFailures+1, "allocation"))
		for _, reason := range reasons(m) {
			fmt.Fprintf(w, "%s  * %s\n", indent, reason)
		}
	}
}

// reasons lists what kept nodes from being used, from the general to the special: none there, left out by a
// constraint, full. One node can stand in several of them.
func reasons(m *drover.AllocationMetric) (out []string) {
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if m.NodesEvaluated == 0 {
		add("no node was eligible: none is ready, or none is in the job's datacenters and node pool")
	}
	for _, dc := range slices.Sorted(maps.Keys(m.NodesAvailable)) {
		if m.NodesAvailable[dc] == 0 {
			add("no node is available in datacenter %q", dc)
		}
	}
	if m.NodePool != "" && m.NodesInPool == 0 {
		add("no node is in node pool %q", m.NodePool)
	}
	each(m.ClassFiltered, func(k string, n int) { add("class %q: %s left out", k, term.Plural(n, "node")) })
	each(m.ConstraintFiltered, func(k string, n int) { add("%s: %s left out", k, term.Plural(n, "node")) })
	if m.NodesExhausted > 0 {
		add("%s without enough room", term.Plural(m.NodesExhausted, "node"))
	}
	each(m.ClassExhausted, func(k string, n int) { add("class %q: %s without enough room", k, term.Plural(n, "node")) })
	each(m.DimensionExhausted, func(k string, n int) { add("not enough %s on %s", k, term.Plural(n, "node")) })
	for _, q := range m.QuotaExhausted {
		add("the quota is used up: %s", q)
	}
	return out
}

// each calls f for the entries of a map, sorted by key, so that the same answer is printed the same way.
func each(m map[string]int, f func(string, int)) {
	for _, k := range slices.Sorted(maps.Keys(m)) {
		f(k, m[k])
	}
}
