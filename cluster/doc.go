// Package cluster is the vocabulary of several servers: what they are together, who of them holds what, and how they are kept healthy.
// It has no I/O and starts no goroutines.
package cluster
