// Package tenants has the commands for tenants: namespaces and what their jobs may use. It starts no goroutines.
package tenants
