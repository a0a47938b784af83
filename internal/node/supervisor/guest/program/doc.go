// Package program turns a command into a running program: its user, environment, directory and path, its descriptors or
// its terminal, its resource limits, and at its end the receipt of how it ended.
//
// What is started, and what its output is for, is decided by packages task and executions. It starts no goroutines; Pump
// is called in one for each stream.
package program
