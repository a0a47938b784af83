// Package office holds the use cases of the fleet: what operators and faces ask of it. Pools are put, paused and deleted here,
// plans made, machines listed, explained, held and killed, costs summed up, and what was done is kept in an audit log.
//
// The package reads the state, writes the log, and reaches the running loops through interfaces that it declares. It starts
// no goroutine: every method runs in its caller's. What is bought is decided by package scaler; package pool owns the
// machines' states; package keeper runs the loops.
package office
