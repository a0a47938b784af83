// Package bench measures this machine: "drover bench" and its data. It starts agents of its own and uses their APIs as
// everybody does, but for the state of a large server (package state) and the fleet on simulated clouds (package fleet).
//
// Its goroutines: those of a measurement end with it; the reader of an agent's output ends with the agent.
package bench
