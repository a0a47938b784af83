// Package live is what a running agent takes up anew when its configuration is read again: certificates and authorities, the level
// of the log, and headers of answers. All is replaced together, or nothing is. It starts no goroutine.
package live
