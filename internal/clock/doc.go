// Package clock is the only importer of time.Now, time.NewTimer and their like, so that deciders and loops can be run
// on simulated time.
//
// It decides nothing about time. Wall, the real clock, starts no goroutines of its own; a timer belongs to who made it.
package clock
