// Package state makes the state of a large server for "drover bench": 10,000 nodes and a million running allocations in a
// data folder that an agent can be started on. It starts no goroutine but those of the log, which end with it.
package state
