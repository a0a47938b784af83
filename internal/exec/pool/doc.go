// Package pool holds the values that the execution service decides with: the stack of warm runners, the queue of
// claims that wait for one, and the heap of deadlines. They know no clock, lock or goroutine: their owner has those.
//
// Which runner is whose is decided by package runner.
package pool
