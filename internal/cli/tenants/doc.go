// Package tenants has the commands for tenants: namespaces, what their jobs may use, and quotas. It starts no goroutines.
package tenants
