// Package stats samples a machine from /proc: when somebody asks, never by itself.
//
// What tasks use is their drivers'. It starts no goroutines.
package stats
