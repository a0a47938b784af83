// Package identities gets the tokens of a node's tasks from control: those that many tasks ask for in one moment in one call.
//
// A batch runs in a goroutine of its own, which ends when control answered, or after a bounded number of tries.
package identities
