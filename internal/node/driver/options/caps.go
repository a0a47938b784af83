package options

import (
	"slices"
	"strings"
)

// CapName is a capability's name without case and prefix: "net_admin" of "CAP_NET_ADMIN".
func CapName(name string) string { return strings.TrimPrefix(strings.ToLower(name), "cap_") }

// HasCap reports whether a list names a capability, however either is written.
func HasCap(list []string, name string) bool {
	return slices.ContainsFunc(list, func(n string) bool { return CapName(n) == CapName(name) })
}
