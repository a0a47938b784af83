// Package provider is the seam between the fleet and clouds: few methods, and errors that carry meaning.
//
// It holds no machine and decides nothing. Calls run in their caller's goroutine, and implementations keep none.
package provider
