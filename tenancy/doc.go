// Package tenancy holds what separates tenants: namespaces with what their jobs may use, and the quotas that they share, under Nomad's
// wire names. It has no I/O and starts no goroutines.
//
// What a namespace allows is decided by package tenant, what a quota does by package quota, both below internal.
package tenancy
