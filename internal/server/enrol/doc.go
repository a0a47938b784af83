// Package enrol is how a node of another process comes to its servers: which tokens it shows, and how it gets its certificate.
//
// Who may join is the gate's (fleet/gate); a certificate is kept and renewed by node/machine. It starts no goroutines.
package enrol
