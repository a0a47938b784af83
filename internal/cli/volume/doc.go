// Package volume has "drover volume": host volumes are created, registered, shown and deleted, by volume files as Nomad's.
//
// It starts no goroutines.
package volume
