// Package program runs the real binary for tests: it builds it once, starts and ends agents of it, and says what a run
// left on the machine.
//
// It asks an agent nothing: tests do. One goroutine an agent reads its output and ends with the process.
package program
