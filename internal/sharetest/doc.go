// Package sharetest bounds how many packages with real daemons or many processes run their tests at once on the machine, over
// all runs. So a machine with much to do makes them slower, and fails none. It starts no goroutines.
package sharetest
