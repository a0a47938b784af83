// Package listing selects a page of executions in one pass: however many there are, no more than the page is kept.
//
// Pages of several servers are put together in the same way, since each has its part of the executions. Where they come from, and who may
// see them, is not its job. It knows no clock, lock or goroutine.
package listing
