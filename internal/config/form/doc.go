// Package form reads structs of the vocabulary from blocks of the configuration, where durations are texts, and blocks may be missing.
//
// It starts no goroutines.
package form
