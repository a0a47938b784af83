// Package cluster makes the servers of a region one cluster and keeps them so. It says who begins it, who is added when gossip
// tells of a server, who is taken out, and which id the cluster has.
//
// What the members are is package members' business, what they agree on raftlog's, and what autopilot does when a server is
// silent is decided there too. This package has no state of its own: all that it does follows from both.
//
// Run owns the goroutines, which end with its context.
package cluster
