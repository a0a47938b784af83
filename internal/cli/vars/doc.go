// Package vars has the commands about variables: put, get, list and purge.
//
// It starts no goroutines.
package vars
