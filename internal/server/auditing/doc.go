// Package auditing makes the record of an agent's requests from its configuration, reads it back, and records refusals where no face is:
// at the port of nodes, at connections and at tasks' sockets.
//
// What a record is, and how it is kept, is package audit's. It starts no goroutines.
package auditing
