// Package raftlog carries commands through hashicorp/raft to the FSM. With one voter and no data directory everything
// is in memory; with a data directory the log is a bbolt file and snapshots are files, and an acknowledged write
// survives kill -9. With a network several servers share the log.
//
// It is the only importer of hashicorp/raft, apart from package autopilot.
//
// What an entry does is package fsm's. raft owns its goroutines until Close; those of Follow end with the term of
// office.
package raftlog
