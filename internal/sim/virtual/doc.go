// Package virtual is time and chance of a simulation: a heap of events, a clock, a network, and loops that are coroutines, all on one
// goroutine and under a seed. The same seed gives the same events.
//
// What happens in it is package sim's. A loop's coroutine ends with its Scope.
package virtual
