// Package insight judges what is known of a whole cluster: what of it wants attention, since when, and what to do about it. It is not its
// job to find the facts out or to change them.
//
// It is a function of values: it starts no goroutine.
package insight
