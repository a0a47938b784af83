// Package fleet is "drover fleet". Pools and machines are listed, explained, planned, steered and paid for by the API of an
// agent. A check with a real machine and simulations are functions that are given to it. It starts no goroutine.
package fleet
