// Package throttle says how often somebody may do something, in bounded memory: a token bucket for each key. It starts no goroutines
// and reads no clock.
package throttle
