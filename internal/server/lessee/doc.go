// Package lessee runs this server's execution service, and is that service for the faces.
//
// A server that is alone has one for its whole life. Of several servers the one that leads has it, for as long as it leads, and
// each time anew: under an incarnation, which the state machine leases all warm runners to. A leader that another replaces gives
// back what it has not handed out. What one that is gone may have handed out without a record of it is stopped, so that no runner
// is handed out by two. The claims that this server did not record when it had the service last stand in its journal, and are
// proposed before.
//
// Run owns all goroutines; they end with its context.
package lessee
