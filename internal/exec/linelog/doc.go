// Package linelog is a file of lines that only grows, until it is written anew with those that still count. A line that
// was appended outlives the process, not the machine: what it is kept for (runners, what runs in them) doesn't either.
//
// What the lines mean is their writer's. It starts no goroutines and has no lock: its owner has.
package linelog
