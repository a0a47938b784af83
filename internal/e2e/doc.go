// Package e2e tries the real binary as its users do: with the official Nomad client, over Poseidon's API, with the
// plug pulled. It has tests only.
//
// What can be tried without processes is tried beside the code. Agents end with their test; package program sees to it.
// A test's goroutines end with it.
package e2e
