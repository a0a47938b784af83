package network

import (
	"github.com/drover-project/drover/internal/optional"
)

// Resource is a group's network request and, allocated, its answer.
type Resource struct {
	Mode          string // host (default), bridge, none, cni/NAME
	Device        string
	CIDR          string
	IP            string
	Hostname      string
	MBits         int
	DNS           *DNSConfig
	ReservedPorts []Port
	DynamicPorts  []Port
	CNI           *CNIConfig `json:",omitempty"`
}

// CNIConfig is what the plugins of a network of mode cni/NAME are told beside its configuration.
type CNIConfig struct{ Args map[string]string }

// DNSConfig is written to resolv.conf.
type DNSConfig struct {
	Servers  []string
	Searches []string
	Options  []string
}

// Port is a named port; Value is the host's, To the task's (0 = same, -1 = same as Value).
type Port struct {
	Label           string
	Value           int
	To              int
	HostNetwork     string
	IgnoreCollision bool `json:",omitempty"`
}

// Dynamic port range.
const (
	MinDynamicPort = 20000
	MaxDynamicPort = 32000
)

// PortMapping is a port as allocated.
type PortMapping struct {
	Label           string
	Value           int
	To              int
	HostIP          string
	IgnoreCollision bool `json:",omitempty"`
}

// Status is the address in the allocation's own network.
type Status struct {
	InterfaceName string
	Address       string
	AddressIPv6   string
	DNS           *DNSConfig
}

// Canonicalize fills in the mode.
func Canonicalize(list []*Resource) {
	for _, n := range list {
		if n != nil {
			optional.Default(&n.Mode, "host")
		}
	}
}
