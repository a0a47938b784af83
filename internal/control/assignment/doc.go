// Package assignment is control as nodes see it: a exchange.Controller over the state and the log. It is level
// triggered: a node says what it observes, and pulls what is wanted of it.
//
// What should run where is decided by the scheduler; here it is handed out. Push's batches run in goroutines of the
// Controller that end when the log answers; everything else runs in the goroutine of who calls.
package assignment
