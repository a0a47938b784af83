// Package server is the composition root: it joins the planes into an agent, and says in which order they start and stop.
// server.go is the table of contents.
//
// What is a subject of its own stands below it: who the servers are (servers), how nodes are answered (nodes), leases of runners
// (lessee), the seam of the execution service (execseam), the fleet (fleetplane), regions, the machine's drivers (host), evaluation of
// what users wrote (texts), what can be read again (live), and what the agent says of itself (self).
//
// Run owns the goroutines, which end with its context.
package server
