package fingerprint

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
)

// Every machine has a loopback: its addresses are found by interface, by network, and by both.
func TestHostNetworks(t *testing.T) {
	t.Parallel()
	require.Empty(t, HostNetworks(nil))
	found := HostNetworks(map[string]*drover.HostNetworkInfo{
		"a": {Interface: "lo"}, "b": {CIDR: "127.0.0.0/8", ReservedPorts: "22"}, "c": {Interface: "lo", CIDR: "127.0.0.1/32"},
		"d": {CIDR: "240.1.2.0/24"}, "e": {Interface: "none0"}, "f": {CIDR: "nonsense"},
	})
	require.Len(t, found, 3)
	for i, name := range []string{"a", "b", "c"} {
		require.Equal(t, "lo", found[i].Device)
		require.Equal(t, drover.NodeNetworkAddress{
			Family: "ipv4", Alias: name, Address: "127.0.0.1", ReservedPorts: []string{"", "22", ""}[i],
		}, found[i].Addresses[0])
	}
}
