// Package programtest writes programs that tests execute.
//
// It is for tests only, and starts no goroutines.
package programtest
