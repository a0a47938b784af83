// Package exectest has stand-ins for control and nodes, in memory, for tests of the execution service and its faces.
//
// It is for tests only. Its goroutines end with the test that made it.
package exectest
