// Package lazyregexp compiles regular expressions when they are used first. Every command, evaluator and agent would otherwise compile at
// its start those of all packages, and keep them. It starts no goroutines.
package lazyregexp
