// Package replay keeps the body of a request, so that a request can be answered again: by its handler, or by another server.
//
// It starts no goroutines.
package replay
