// Package wake has the two ways in which one goroutine wakes others up.
//
// A Signal wakes the one loop that receives from it: signals that arrive while nobody receives become one. A Broadcast
// wakes everybody who waits at that moment.
//
// Neither carries a value. Who wakes changes the shared state first and signals afterwards; who wakes up reads the state
// again. The package starts no goroutines and knows no time: a wait with a deadline is clock.Await's job.
package wake
