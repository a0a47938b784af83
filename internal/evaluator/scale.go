//go:build !race

package evaluator

// scale is 1: a program counts its memory as it is.
const scale = 1
