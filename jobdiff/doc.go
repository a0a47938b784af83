// Package jobdiff is the shape of the difference between two versions of a job, as Nomad's API tells it. It has no I/O and
// starts no goroutines.
//
// The difference is made by control/intake, below internal.
package jobdiff
