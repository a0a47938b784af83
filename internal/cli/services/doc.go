// Package services is "drover service": what jobs offer to each other, and where it is found. Whether checks pass is told by
// "drover alloc checks" of cli/alloc. It starts no goroutine.
package services
