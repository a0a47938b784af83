// Package groupnet gives allocations whose group has network mode bridge or cni/NAME one network namespace for all their tasks. They
// find each other on localhost and have one address, on the machine's bridge or in the network that its administrator configured, and
// the group's ports lead there.
//
// A namespace lives as long as its allocation, over restarts of tasks and of the agent. A mount below <data>/netns keeps it,
// and a record beside it says what it is connected to. Docker joins no namespace but a container's, so where a task of the
// group is docker's, a container that only waits (supervisor/hold) holds it, and the others join that one's.
//
// Warm runners, and the only task of a group of driver sandbox, have a namespace of their own instead, which costs less.
//
// What guests reach is package egress': on the bridge by rules of the machine, in networks of CNI, which are package cni's and their
// plugins', by rules in each namespace. It starts no goroutines.
package groupnet
