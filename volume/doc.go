// Package volume holds host volumes that were made through the API, and claims of them, under Nomad's wire names. It has no I/O
// and starts no goroutines.
//
// How a group asks for a volume, and what a node tells of one, are nouns of the root package.
package volume
