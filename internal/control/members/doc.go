// Package members knows the servers of this region and of others, by gossip. It is the only importer of hashicorp/serf.
//
// A server announces itself with what the others must know before they can speak to it. That is its id, its rpc port, how many
// servers it expects, its cluster, and the versions that it understands. Every server sees the same members, apart from the
// moment that gossip takes. A member that stops answering becomes failed without being asked.
//
// Who may join is decided here in two ways: by the gossip key, without which nothing is understood, and by the cluster id:
// two clusters of one region never merge. What follows from a member that came or went (that it votes, that its leases
// end) is the leader's decision and not this package's.
//
// serf owns its goroutines until Close; this package adds one, which reads serf's events and ends at Close too.
package members
