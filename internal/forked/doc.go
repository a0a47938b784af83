// Package forked knows what a child has that was just forked: until it runs its own program, all files of its parent, those
// too that the parent closes meanwhile. It starts no goroutines.
package forked
