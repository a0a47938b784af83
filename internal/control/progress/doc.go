// Package progress counts how far deployments are: what is placed, healthy and unhealthy of each group, its canaries, and the deadline by
// which there must be progress. Its functions are pure: they return new values.
//
// What a deployment does next is decided in package leader; fsm stores what is counted here. It starts no goroutines.
package progress
