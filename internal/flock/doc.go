// Package flock locks open files and folders against other processes of the machine, and against other openings in this
// one. A lock ends with its process. It starts no goroutines, and waits only where its caller asks for that.
package flock
