// Package variables has the use cases of variables: it reads, writes, deletes and locks them for who may, and keeps their locks.
//
// Items are encrypted before a command is made of them, so that neither the log nor a snapshot has them; package sealed does to the state
// what a command says. Locks are timed by the leader (Lead), whose owner starts it; a call runs in its caller's goroutine.
package variables
