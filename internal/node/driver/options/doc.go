// Package options reads a task's configuration. It takes typed values out of a map as JSON or HCL made it, and collects
// all that is wrong, each problem with its key.
//
// What a key means is the driver's. It starts no goroutines.
package options
