// Package link joins a node to control over the network. The node dials; nothing listens on it. exchange.Controller
// travels from the node to control as connectrpc calls; exchange.Workloads travels the other way, through a
// connection that the node opened (Tunnel) and over which HTTP/2 is spoken in reverse.
//
// Messages are plain Go structs in msgpack, so there is no second set of types.
//
// It knows no plane and decides nothing: it carries package exchange's interfaces. A tunnel owns its connection's
// goroutines, which end when it closes; a session's ends with the stream.
package link
