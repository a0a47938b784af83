// Package simulator runs the fleet's real deciders on virtual time against a simulated cloud, simulated agents and
// workloads, and checks invariants on the way. One goroutine, one heap of events, one seed: the same configuration
// gives the same hash of all actions on any machine. It serves tests, and users who try a policy on a trace.
//
// It asks no cloud and reads no state of a server. It starts no goroutines but its one.
package simulator
