// Package scheduler decides where allocations run. Schedule is a pure function: an evaluation, a snapshot, the time
// and a seed go in; a plan, the changed evaluation, follow-up evaluations and an explanation come out. It has no
// context, goroutine, lock, I/O or clock, and nothing of what it returns depends on the order of a map, so the same
// input gives the same output.
//
// It works in three steps. The reconciler (reconcile*.go, pool.go, system.go) compares a group's desired allocations
// with the existing ones and says what to stop, update and place. The stage (stage.go, feasible.go) lists the nodes
// that the job may use at all and decides feasibility once per computed class. The board (board.go) scores a group's
// nodes once, keeps them in heaps by spread value, and re-scores only the node chosen: a placement costs O(log nodes).
//
// Only the node's word frees resources: an allocation that a plan stops still holds its place until its node said that
// it ended. A replacement that needs that very place is left to the blocked evaluation, which wakes when it is free.
package scheduler
