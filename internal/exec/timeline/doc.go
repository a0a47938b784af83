// Package timeline remembers when the streams of an execution had come how far, thinned out to a bound of memory.
//
// It is a value that its owner locks: package journal has one beside each execution's output. It starts no goroutines.
package timeline
