// Package fleet is "drover fleet": pools and machines are listed, explained, planned, steered and paid for by the API of
// an agent; a check with a real machine and simulations are functions that are given to it. It starts no goroutine.
package fleet
