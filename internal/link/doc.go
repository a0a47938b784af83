// Package link joins a node to control over the network. The node dials; nothing listens on it. exchange.Controller travels
// from the node to control as connectrpc calls. exchange.Workloads travels the other way: the node opens a connection (Tunnel),
// and HTTP/2 is spoken over it in reverse.
//
// Messages are plain Go structs in msgpack, so there is no second set of types.
//
// A node has one connection with each server (line), with a tunnel, and asks one of them (Dialed) for as long as that gives signs of
// life; it dials that one first (turn.go). Where a server has no tunnel, a pipe leads through that of another one (Piped).
//
// It knows no plane, and decides nothing but which server is asked: it carries package exchange's interfaces. A tunnel owns its
// connection's goroutines, which end when it closes, as those of a pipe; a session's ends with the stream. Dialed.Run owns those
// that keep the tunnels and watch the main server.
package link
