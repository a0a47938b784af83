// Package stack makes goroutines' stacks large enough at once.
//
// A goroutine begins with a stack of 2 KiB, and each time that one is full it is copied into one of twice the size. To copy a stack the
// runtime looks up every frame in the program's tables. In a supervisor, which lives a few milliseconds, these are page faults as well. In
// an agent that does many different things they are not in the processor's caches.
//
// It starts no goroutines.
package stack
