// Package ledger says what machines cost, and who caused it: each machine is charged by its billing rules, and what it
// is charged is divided by what used it since the last time.
//
// It stores nothing: package pool records what it returns. It starts no goroutines.
package ledger
