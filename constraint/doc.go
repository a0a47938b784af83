// Package constraint holds what a job says of the nodes that it wants: constraints, affinities and spreads under Nomad's wire names, with
// their defaults and what is wrong with them. It has no I/O and starts no goroutines.
//
// Which nodes meet them is decided by control/scheduler, below internal.
package constraint
