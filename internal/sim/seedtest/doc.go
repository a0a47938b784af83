// Package seedtest plays worlds that are drawn from seeds, and those that are kept in files, for the tests of simulations. It has the flags
// of all of them. It starts no goroutines but those of tests.
package seedtest
