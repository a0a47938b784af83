// Package hcl1 reads HCL, and of the dialect before what is usual in configurations of Nomad.
package hcl1
