// Package server is the composition root: it joins the planes into an agent, and says in which order they start and stop.
// server.go is the table of contents.
//
// Subjects of their own stand below it: who the servers are (servers), how nodes are answered (nodes), leases of runners
// (lessee), and the seam of the execution service (execseam). So do the fleet (fleetplane), regions, the machine's drivers
// (host), and the evaluation of what users wrote (texts). What can be read again is in live, and what the agent says of itself
// in self.
//
// Run owns the goroutines, which end with its context.
package server
