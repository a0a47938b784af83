// Package hcl1 reads HCL, and of the dialect before what is usual in configurations of Nomad.
//
// It starts no goroutines: a text is read in its caller's.
package hcl1
