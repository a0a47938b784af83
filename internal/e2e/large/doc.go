// Package large is a large cluster in memory behind the real faces, without nodes or a log: pages and lists are measured on it.
//
// It has no goroutines of its own.
package large
