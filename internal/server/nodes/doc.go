// Package nodes answers nodes at any server of a cluster.
//
// What a node reports, and who is heard of, goes through to the leader: calls of many nodes in one message. What is wanted of a
// node each server tells from its own state (assignment.Controller.Pull). Who a node is is decided on state that has all that the
// leader's had when it was asked.
//
// A server that is alone is asked directly, without any of that.
//
// Goroutines are those of the messages on their way to the leader; they end with the answers, which have a time limit.
package nodes
