// Package environment translates environments to and from the jobs that keep their warm runners. It does no I/O.
//
// Which runners there are is package runner's. The package starts no goroutines.
package environment
