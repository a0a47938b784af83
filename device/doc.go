// Package device holds attributes of devices: numbers with units, texts and truths as nodes tell them and constraints name them. They are
// compared across units of a kind. It has no I/O and starts no goroutines.
//
// The groups of devices that a node has and a task asks for are nouns of the root package.
package device
