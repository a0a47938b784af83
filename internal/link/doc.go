// Package link joins a node to control over the network. The node dials; nothing listens on it. exchange.Controller travels
// from the node to control as connectrpc calls. exchange.Workloads (package workloads) travels the other way: the node opens a
// connection (Tunnel), and HTTP/2 is spoken over it in reverse. What calls and messages look like is package wire's.
//
// A node has one connection with each server (line), with a tunnel, and asks one of them (Dialed) for as long as that gives signs of
// life; it dials that one first (turn.go). Where a server has no tunnel, a pipe leads through that of another one (Piped).
//
// It knows no plane, and decides nothing but which server is asked: it carries package exchange's interfaces. A tunnel owns its
// connection's goroutines, which end when it closes, as those of a pipe. Dialed.Run owns those that keep the tunnels and watch the
// main server.
package link
