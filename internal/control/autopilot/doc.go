// Package autopilot keeps the servers of a cluster healthy through hashicorp/raft-autopilot: servers that joined get a vote once
// they are stable, servers that failed are taken out while the others are a quorum. Who may vote is ours (promoter.go): read
// replicas never do, and with redundancy zones one server of each zone does.
//
// It is a package of its own, and not raftlog's, because the library brings the packages of its tests into each program that
// imports it (0.4 MB).
//
// Run owns the library's goroutines; they end with its context.
package autopilot
