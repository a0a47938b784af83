// Package takeover takes the data folder and the ports that an agent needs, also a moment after an earlier agent was
// killed.
//
// A process that the earlier agent was just starting has that agent's locks and sockets until its own program runs. So
// an agent that starts meanwhile waits for a while before it says that another agent is in the way.
//
// What lies in the folder and what is served at a port are not its business. It starts no goroutines.
package takeover
