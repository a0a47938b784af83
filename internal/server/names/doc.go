// Package names opens the name server's listeners as the configuration wants them, and finds services for it: it asks the faces of its own
// agent, in memory.
//
// How names are answered is package nameserver's. It starts no goroutines.
package names
