// Package network holds what a group asks of the network and what its allocation got. These are modes, ports, names and CNI's
// arguments, under Nomad's wire names, with their defaults and what is wrong with them. It has no I/O and starts no goroutines.
package network
