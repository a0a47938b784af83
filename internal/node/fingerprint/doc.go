// Package fingerprint finds out what a machine has: cpu, memory, disk, kernel, system, addresses. Attributes carry
// Nomad's names, which jobs' constraints use.
//
// What tasks use is package stats', what a driver can do is the driver's. It starts no goroutines.
package fingerprint
