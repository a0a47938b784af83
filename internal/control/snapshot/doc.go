// Package snapshot writes the state as a stream of records, and reads it back: Of and Image.Write, Read, and Survey for what only
// wants to know what is in one. The same state gives the same bytes.
//
// When a snapshot is taken and where it is kept is package raftlog's business. Packing one into a file for operators is package
// archive's, and what changes when a state is replaced is package fsm's. It starts no goroutines.
package snapshot
