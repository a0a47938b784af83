// Package doctor is "drover doctor": what this machine has for running tasks, what it lacks, and what hostile programs can
// do to it; or what is wrong with the servers of a region. The programs are run by a function that is given to it, and what the
// servers say is judged by package cluster.
//
// Its goroutines ask servers, and end when those have answered or were given up.
package doctor
