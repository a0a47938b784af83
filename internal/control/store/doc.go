// Package store holds the state in memory: go-memdb tables, and for allocations copy-on-write B-trees, behind typed
// methods. Each table has an index (the raft index of its last change) and watches.
//
// A value in the store is immutable. Whoever wants to change one copies it, changes the copy and puts it. Values share
// what they can: allocations point to their job's version and, of one plan, to the same resources.
//
// Reads go through a Snapshot, which never changes. Writes go through a Txn, one at a time, and only the FSM makes
// them. What is derived (summaries, counts, used capacity) is kept incrementally by PutAllocation and its like, so
// that no reader needs to scan.
//
// What a change means is package fsm's. The package starts no goroutines: watches are channels that a commit closes.
package store
