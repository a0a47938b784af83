// Package rights decides: what the rules of several policies allow together, compiled to a value that never changes and answers without
// allocating.
//
// What a policy's text says is package policy's; whose policies they are is package access'. The package starts no goroutines.
package rights
