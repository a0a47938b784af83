// Package doctor is "drover doctor": what this machine has for running tasks, what it lacks, and what hostile programs can
// do to it. The programs are run by a function that is given to it. It starts no goroutine.
package doctor
