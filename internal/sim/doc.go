// Package sim runs Drover's control plane, nodes and execution service on one goroutine, in virtual time, under a seed.
//
// Real are: the commands and their codec, fsm, store (with its watches, snapshots and restores), intake with all its use
// cases, the leader with all its loops (workers, planner, broker, drains, roll-outs, heartbeats, periodic jobs, garbage),
// the scheduler, all of assignment, the triggers, the task machine, the core of the warm runners (exec/runner's Core) and the
// translation of environments.
//
// Written again here, as thin loops around the same deciders, are the agent's pull, push and registration, allocrunner and
// taskrunner, and the shell of exec/runner's Core with its journal.
//
// Outside is hashicorp/raft: its contract is simulated (order, delay, answers that get lost, leadership lost with
// entries in flight, a full disk, a crash), as are nodes, the network and clients.
//
// A loop is a coroutine (iter.Pull): it gives the one goroutine back when it waits. The shipped loops wait for the log
// (Propose) and through clock.Await, and start others by clock.Go; both ask the world's clock. So they run unchanged, and
// every interleaving repeats with its seed. A loop that waits by a select of its own would stop the world. After every
// entry of the log and every step of a node the invariants are checked; when the faults are over everything has to come
// to rest as it was asked for.
package sim
