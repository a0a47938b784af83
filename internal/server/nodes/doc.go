// Package nodes answers nodes at any server of a cluster.
//
// What a node reports, and which nodes were heard of, goes through to the leader: calls of many nodes in one message. Each
// server tells from its own state what is wanted of a node (assignment.Controller.Pull). To decide who a node is, a server
// needs a state with all that the leader's had when it was asked.
//
// A server that is alone is asked directly, without any of that.
//
// Goroutines are those of the messages on their way to the leader; they end with the answers, which have a time limit.
package nodes
