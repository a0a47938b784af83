// Package scheduler decides where allocations run. Schedule is a pure function: an evaluation, a snapshot, the time
// and a seed go in; a plan, the changed evaluation, follow-up evaluations and an explanation come out. It has no
// context, goroutine, lock, I/O or clock, and nothing of what it returns depends on the order of a map, so the same
// input gives the same output.
//
// It composes packages that each decide one thing. Package reconcile compares a group's desired allocations with the
// existing ones and says what to stop, update and place. Package rank scores the nodes that package feasible lets the
// group use, and package grant gives out ports, cores and devices. Package draft is the plan while it is made.
//
// Only the node's word frees resources: an allocation that a plan stops still holds its place until its node said that
// it ended. A replacement that needs that very place is left to the blocked evaluation, which wakes when it is free.
package scheduler
