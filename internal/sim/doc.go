// Package sim runs Drover's control plane, nodes and execution service on one goroutine, in virtual time, under a seed.
//
// Real are: the commands and their codec, fsm, store (with its watches, snapshots and restores), the broker and the
// blocked evaluations, the scheduler, the planner's check, intake with all its use cases, registrations and heartbeats
// of assignment, its reactions and what it wants of a node, the leader's deciders (drains, roll-outs, garbage,
// what becomes of lost and disconnected nodes and of evaluations that cannot be delivered), the triggers, the task machine, the warm
// pool's values and the translation of environments.
//
// Only reachable through goroutines, and therefore written again here as thin loops around the same deciders: the
// leader's workers and watchers, the broker's Shell, the planner's pipeline, assignment's Push and Pull, the agent's
// pull, push and registration, allocrunner and taskrunner, and exec/runner's Service with its journal.
//
// Outside is hashicorp/raft: its contract is simulated (order, delay, answers that get lost, leadership lost with
// entries in flight, a full disk, a crash), as are nodes, the network and clients.
//
// A loop is a coroutine (iter.Pull): it gives the one goroutine back when it waits, so real code that blocks on the log
// runs unchanged and every interleaving repeats with its seed. After every entry of the log and every step of a node
// the invariants are checked; when the faults are over everything has to come to rest as it was asked for.
package sim
