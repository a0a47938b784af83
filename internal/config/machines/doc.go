// Package machines has the block of the configuration about machines that are bought and returned: their providers and pools. It reads
// pools from files of their own, too. What a pool does is said in package fleet of the vocabulary.
//
// It starts no goroutines.
package machines
