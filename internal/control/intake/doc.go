// Package intake holds the use cases that every face shares: it canonicalizes and validates what is asked, makes ids
// and times, and proposes commands. A method returns when its write is durable and in the local state.
//
// All methods return NotLeader and Unavailable when the log does.
//
// It holds no state and starts no goroutines: a use case runs in its caller's. HTTP is the faces', effects are package
// fsm's.
package intake
