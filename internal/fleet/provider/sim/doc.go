// Package sim is a cloud that does not exist: it sells machines, bills them, takes spot machines back, and fails as
// clouds do. Cloud is a value on virtual time, for the simulator; Provider puts a clock around it.
//
// It is for the simulator and for tests. It is a value on virtual time, and starts no goroutines.
package sim
