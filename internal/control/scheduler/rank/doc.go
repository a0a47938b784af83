// Package rank says where an allocation of a group goes best. A Stage lists the nodes that the job may use at all. A Board
// scores a group's nodes once, keeps them in heaps by spread value, and re-scores only the node that was chosen: a
// placement costs O(log nodes). Spread, affinity, distinct_hosts, distinct_property and preemption are decided here; what
// has to be placed is not (package reconcile), nor is the plan written (package draft). It is pure and has no goroutine.
package rank
