// Package plugin has the blocks of the configuration about drivers and devices, and what is wrong with them.
//
// It starts no goroutines.
package plugin
