// Package peercall is how servers call each other: typed calls and whole requests over Forward connections of package peer.
//
// A procedure is registered with Handle on one side and called with Call on the other. Values are msgpack under Go's field
// names; an error arrives with its code and message. Connections are kept, and each speaks HTTP/1.1, so that upgrades pass.
//
// Which server asks is a header that is believed on Forward connections only, as only servers can open those. Whatever else
// such a connection carries is the business of the handlers that are served on it.
//
// The package has no goroutines of its own; net/http's for kept connections end at Client.Close, or when they were idle.
package peercall
