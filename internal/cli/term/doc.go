// Package term is the terminal's side of every command: what a command works with (App), how commands are built and end,
// and how they print. The families of commands are built on it and on package api; it knows none of them.
//
// Its goroutines: Interruptible's, which ends with its context; what UnlessInterrupted leaves behind ends with the process.
package term
