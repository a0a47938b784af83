// Package version says which Drover this is.
//
// It starts no goroutines.
package version
