// Package regions carries what regions share from the authoritative region to this one: namespaces, node pools, quotas,
// admission rules and, with a replication token, access control. It answers other regions' servers, and while this server leads it asks a
// living server of the authoritative region for them.
//
// What differs and what is written is control/federation's; who the servers are is server/servers'. It starts no goroutine: Run ends
// with its context.
package regions
