// Package command holds what goes through the raft log: one struct for each kind of entry. A command carries facts:
// every id, time and random choice is made before it is proposed, so that applying it is deterministic.
//
// Evaluations that follow from a command travel in its Evals field and are stored by the same entry; nothing can be
// lost between the change and the evaluation that reacts to it. Times are unix nanoseconds.
//
// Add a command: a struct here with a Kind, a line in kinds (codec.go), an apply function in fsm.
//
// The effect of a command is package fsm's, its order package raftlog's. The package starts no goroutines.
package command

// Command is an entry of the log. It is immutable once it was proposed.
type Command interface {
	// Kind is the entry's type byte. It never changes its meaning: logs are kept.
	Kind() Kind
}

// Result is what one command of a Batch answered.
type Result struct {
	Value any
	Err   error
}
