// Package taskenv builds a task's environment variables and interpolates ${…} in what a job says.
//
// Which variables a job gets from where is said here; the values are the caller's. It reads nothing and starts no
// goroutines.
package taskenv
