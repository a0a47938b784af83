// Package buffer lends the buffers through which output and files go. They are lent for one read or one frame only, so
// that idle executions, of which a machine has hundreds, cost none.
//
// What is in them is the borrower's. It starts no goroutines.
package buffer
