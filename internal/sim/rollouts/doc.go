// Package rollouts plays random histories of deployments in the world of package sim, and checks what an update strategy
// promises. There are registrations, versions that fail at once or late, updates in place and destructive ones, canaries,
// promotions, reverts, pauses, scales, stops, drains, missing room and lost nodes, all at once.
//
// What is promised, and where we do as Nomad does though less is kept, stands in scheduler/reconcile/DEPLOYMENTS.md
// ("What is promised"). promise.go checks it of every plan and of every entry, budget.go how many allocations are made and when,
// settled.go what everything has come to at the end. A rule that is broken on purpose (in the tests) is found by each of them.
//
// What happens in the world, and how a failing seed is replayed, is package sim's. It starts no goroutines.
package rollouts
