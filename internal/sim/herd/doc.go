// Package herd is what runs on the machines of a simulation: allocations and tasks around the shipped task machine, and the processes that
// outlive an agent.
//
// How agents speak with servers is package sim's. It starts no goroutines.
package herd
