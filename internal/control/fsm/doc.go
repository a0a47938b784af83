// Package fsm applies commands to the store. The same log gives the same state: applying reads no clock, no chance,
// no configuration and no map order. An apply function checks first and writes after, so that a command which fails
// has changed nothing but the index.
//
// One entry is one store transaction. Behind it the observer is told, in the order of the log.
//
// Whether a command may be given is decided before, by package intake; in which order, by package raftlog, whose one
// goroutine calls Apply. The package starts none.
package fsm
