package reconcile

import (
	"github.com/drover-project/drover"
)

// names hands out the lowest free indexes of a group.
type names struct {
	used map[int]bool
	next int
}

// newNames takes the indexes of the given allocations, which keep their names.
func newNames(sets ...[]*drover.Allocation) *names {
	n := &names{used: map[int]bool{}}
	for _, set := range sets {
		for _, a := range set {
			n.used[a.Index()] = true
		}
	}
	return n
}

// take returns the wanted index if it is free and below count, else the lowest free one.
func (n *names) take(wanted, count int) int {
	if wanted >= 0 && wanted < count && !n.used[wanted] {
		n.used[wanted] = true
		return wanted
	}
	for n.used[n.next] {
		n.next++
	}
	n.used[n.next] = true
	return n.next
}
