package scheduler

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// sentence says for people what became of a group.
func sentence(x GroupExplanation) string {
	if x.note != "" {
		return outcome(x) + "; " + x.note
	}
	return outcome(x)
}

func outcome(x GroupExplanation) string {
	if x.Failed == 0 && !x.unfit {
		return fmt.Sprintf("group %q: %d placed", x.Group, x.Placed)
	}
	m := x.Metric
	head := fmt.Sprintf("group %q: %d of %d placed: ", x.Group, x.Placed, x.Placed+x.Failed)
	if x.unfit {
		head = fmt.Sprintf("group %q: fits no node: ", x.Group)
	}
	if len(x.overQuota) > 0 {
		return head + fmt.Sprintf("quota %q: %s", x.quota, strings.Join(x.overQuota, ", "))
	}
	if m.NodesEvaluated == 0 {
		return head + fmt.Sprintf("no ready node in node pool %q matches the datacenters (nodes in the pool: %d)", m.NodePool, m.NodesInPool)
	}
	var why []string
	say := func(nodes int, what string) {
		why = append(why, fmt.Sprintf("%d of %d nodes %s", nodes, m.NodesEvaluated, what))
	}
	for _, k := range slices.Sorted(maps.Keys(m.ConstraintFiltered)) {
		say(m.ConstraintFiltered[k], "do not pass: "+k)
	}
	for _, k := range slices.Sorted(maps.Keys(m.DimensionExhausted)) {
		say(m.DimensionExhausted[k], "are exhausted: "+k)
	}
	if x.taken > 0 {
		say(x.taken, "are taken under distinct_hosts or distinct_property")
	}
	return head + strings.Join(why, ", ")
}
