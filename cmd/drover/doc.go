// Command drover is Drover: control plane, node agent, execution service and command line in one binary. On other systems
// than Linux it is the command line only.
//
// main's goroutine runs the command; it starts no others.
package main
