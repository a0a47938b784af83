// Package fleet holds the fleet's nouns: policies of pools, what clouds offer, the machines that were bought, plans, costs
// and the audit log, as the API and the configuration name them.
//
// The package does no I/O and decides nothing: what is bought is decided by internal/fleet/scaler.
//
// It starts no goroutines.
package fleet
