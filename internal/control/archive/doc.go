// Package archive keeps the state outside of the log: it writes archives of the state, verifies and reads them, says what is in
// one, and has the state replaced by one. An archive is a compressed tar of meta.json, state.bin and SHA256SUMS, as Nomad's are;
// state.bin is package fsm's snapshot.
//
// What the state is and how it is replaced are the business of package fsm; that all servers replace it at the same entry is
// package raftlog's.
//
// An archive has all that the state has: the fleet's key, the secrets of nodes, and what users put into jobs. Whoever holds one
// can act as the cluster, unless its state.bin is encrypted: with a key of its own that is wrapped as root keys are.
//
// The package starts no goroutine; Schedule.Run is one that its caller starts.
package archive
