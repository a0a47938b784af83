// Package whatif answers what a policy would have done with a workload: it runs the simulator with the limits of calls and
// boot times that the pool's provider has.
//
// It knows the providers, which the simulator does not. It runs in its caller's goroutine.
package whatif
