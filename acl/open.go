package acl

import "slices"

// Groups of routes that a configuration opens to everybody, or closes: open_routes.
const (
	OpenHealth   = "health"   // how an agent is
	OpenStatus   = "status"   // who leads, the servers' addresses, the regions
	OpenKeys     = "keys"     // with which identities are checked
	OpenVersion  = "version"  // of the program
	OpenDocument = "document" // the OpenAPI document
	OpenMetrics  = "metrics"
)

// OpenGroups are all groups of routes that can be opened.
func OpenGroups() []string { return append(DefaultOpen(), OpenMetrics) }

// DefaultOpen are the groups that are open where nobody says otherwise: as in Nomad, but for metrics.
func DefaultOpen() []string {
	return []string{OpenHealth, OpenStatus, OpenKeys, OpenVersion, OpenDocument}
}

// IsOpenByDefault reports whether a group is open where nobody says otherwise.
func IsOpenByDefault(group string) bool { return slices.Contains(DefaultOpen(), group) }
