// Package sim runs Drover's control plane, nodes and execution service on one goroutine, in virtual time, under a seed.
//
// All of the following is shipped code: the commands and their codec, fsm, store (with its watches, snapshots and restores),
// and intake with all its use cases. So are the leader with all its loops (workers, planner, broker, drains, roll-outs,
// heartbeats, periodic jobs, garbage), the scheduler, all of assignment and the triggers. On the node's side it is the task
// machine, allocrunner's rule for the client status, the core of the warm runners (exec/runner's Core) and the translation of
// environments.
//
// Written again here, as thin loops around the same deciders, is what waits in a select of its own, or on channels, files and
// processes at once. Each file names what it stands for:
//
//   - report.go and node.go: node/agent's pull, push, admission and registration. The product's loops select over timers,
//     wake-ups and streams; its pusher also paces updates by their rate, which is left out, and the local state on disk is a map.
//   - herd/allocation.go: allocrunner, without hooks, task folders, prestart, poststart and poststop tasks, and restarts of all tasks. The
//     product's runner owns a goroutine with an inbox, and its health watch (herd/health.go) asks for checks of services.
//   - herd/task.go: taskrunner and a driver. The effects of the task machine become events of the world.
//   - quorum.go, network.go, front.go and lessee.go: of several servers raft, connections, server/nodes with the proposals of
//     server/servers, and server/lessee. DESIGN.md says what is simulated of them.
//   - runners.go: exec/runner's Service, the shell of Core. A claim waits on the world's heap, and the journal is a slice on the
//     world's disk, which loses nothing that was written.
//
// Making these the shipped code needs loops that wait through clock.Await alone, as control's do; the agent's wait for work is
// the first that is worth it. Their own packages test them in synctest bubbles and with the race detector.
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
