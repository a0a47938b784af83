// Package leases has the rules by which the state machine leases warm runners to servers: who gets the next one, and how many a
// pool needs.
//
// It holds values only, and starts no goroutine.
package leases
