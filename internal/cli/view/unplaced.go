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
		for _, reason := range m.Reasons() {
			fmt.Fprintf(w, "%s  * %s\n", indent, reason)
		}
	}
}
