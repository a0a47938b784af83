// Package execution holds the execution service's nouns: environments, the runners made from them, claims, executions
// with their limits and receipts, sessions and files, as the API names them.
//
// The package does no I/O. Session and Files are the seams through which programs reach a running task; whoever runs
// tasks implements them.
//
// It starts no goroutines.
package execution
