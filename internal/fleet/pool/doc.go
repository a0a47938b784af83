// Package pool keeps the fleet's machines: it owns their states, tells the scaler what is there, and turns its
// decisions into effects.
//
// Core is a value without I/O: everything that happens is told to it with the time, and what is to be done is taken
// from it as Effects. Pool is the loop around it for real clouds; the simulator drives the same Core on virtual time.
//
// Nothing is kept on disk here: intents are recorded through the raft log before each create, and everything else is
// rebuilt from the cloud's tags and the agents' calls. Until the cloud's list was seen nothing is bought, and until
// agents had time to call home nothing is destroyed.
//
// What is bought and returned is decided by package scaler. Pool.Run owns the loop and the goroutines of calls of the
// cloud, and returns when they have ended.
package pool
