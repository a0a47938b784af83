// Package clock is the only importer of time.Now, time.NewTimer and their like, so that deciders and loops can be run
// on simulated time.
//
// It decides nothing about time. Wall, the real clock, starts no goroutines of its own; a timer belongs to who made it.
//
// The build tag "stepped" makes a program whose date another process can step while it runs. The cluster that is broken on purpose is
// built with it (internal/e2e/chaos).
package clock
