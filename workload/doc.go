// Package workload says which signed tokens of its own a task has, and how the task is told of them, under Nomad's wire names. It has no
// I/O and starts no goroutines.
//
// Tokens are signed by control/identity and brought to tasks by node/identities, below internal.
package workload
