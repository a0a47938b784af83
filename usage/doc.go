// Package usage holds samples of what tasks, allocations, nodes and devices use, in the shapes of Nomad's API. It has no I/O
// and starts no goroutines.
//
// node/stats and the drivers take them, below internal.
package usage
