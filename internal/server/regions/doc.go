// Package regions carries the namespaces and node pools of the authoritative region to this one. It answers other regions'
// servers, and while this server leads it asks a living server of the authoritative region for them.
//
// What differs and what is written is control/federation's; who the servers are is server/servers'. It starts no goroutine: Run ends
// with its context.
package regions
