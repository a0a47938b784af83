package drover

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// missingDrivers begins the reason of a node that was left out for a driver; its name follows.
const missingDrivers = "missing drivers: "

// MissingDriver returns the driver for which all nodes were left out that were looked at; "" if another reason kept one from being used,
// or there was none.
func (m *AllocationMetric) MissingDriver() (driver string) {
	if m == nil || m.NodesEvaluated == 0 || m.NodesFiltered < m.NodesEvaluated || len(m.ClassFiltered)+len(m.QuotaExhausted) > 0 {
		return ""
	}
	for reason := range m.ConstraintFiltered {
		name, found := strings.CutPrefix(reason, missingDrivers)
		name, _, _ = strings.Cut(name, " ")
		if !found || driver != "" && name != driver {
			return ""
		}
		driver = name
	}
	return driver
}

// Reasons lists in words what kept nodes from being used, from the general to the special: none there, left out by a constraint, full. One
// node can stand in several of them. A missing metric has none.
func (m *AllocationMetric) Reasons() (out []string) {
	if m == nil {
		return nil
	}
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	each := func(counts map[string]int, format string) { // sorted, so that the same answer reads the same
		for _, k := range slices.Sorted(maps.Keys(counts)) {
			add(format, k, nodes(counts[k]))
		}
	}
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
	each(m.ClassFiltered, "class %q: %s left out")
	each(m.ConstraintFiltered, "%s: %s left out")
	if m.NodesExhausted > 0 {
		add("%s without enough room", nodes(m.NodesExhausted))
	}
	each(m.ClassExhausted, "class %q: %s without enough room")
	each(m.DimensionExhausted, "not enough %s on %s")
	for _, q := range m.QuotaExhausted {
		add("the quota is used up: %s", q)
	}
	return out
}

func nodes(n int) string {
	if n == 1 {
		return "1 node"
	}
	return fmt.Sprintf("%d nodes", n)
}
