// Package e2e tries the real binary as its users do: with the official Nomad client, over Poseidon's API, with the
// plug pulled. It has tests only.
package e2e
