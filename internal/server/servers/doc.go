// Package servers is this agent among the servers of its region. It has the port that is split between nodes and servers, the
// members that gossip knows, and the network of the log. It knows who leads, and how a server that does not lead proposes.
//
// It decides nothing: who begins a cluster, who is added and who is taken out is control/cluster's, and who is healthy
// autopilot's. A server that is alone has a Servers too, which knows itself only and opens nothing.
//
// Run owns the goroutines, which end with its context; gossip and the port are opened by Listen and Open, and closed by
// Close.
package servers
