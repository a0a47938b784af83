// Package localstate remembers, over a restart of the agent, which allocations a node has and how to find their tasks
// again. Changes of many tasks share one fsync.
//
// What is done with what is remembered is package agent's. A store's only goroutine writes while changes are pending,
// and Close waits for it.
package localstate
