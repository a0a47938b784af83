// Package program turns a command into a running program, with its user, environment, directory and path. It makes the
// program's descriptors or terminal, sets its resource limits, and writes the receipt of how it ended.
//
// What is started, and what its output is for, is decided by packages task and executions. It starts no goroutines; Pump
// is called in one for each stream.
package program
