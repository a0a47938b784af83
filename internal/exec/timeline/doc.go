// Package timeline remembers when the streams of an execution had come how far, thinned out to a bound of memory.
//
// It is a value that its owner locks: package executor keeps one beside each journal. It starts no goroutines.
package timeline
