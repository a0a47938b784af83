//go:build race

package evaluator

// scale allows for the race detector, which keeps several bytes for each of the program's.
const scale = 8
