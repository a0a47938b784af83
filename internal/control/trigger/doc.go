// Package trigger says which evaluations follow from what happened. It is pure: intake, leader and assignment put what
// it returns into the entry that makes the change, so that nothing is lost between a change and the reaction to it.
//
// It stores nothing and starts no goroutines.
package trigger
