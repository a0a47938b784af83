package agent

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/cni"
	"github.com/drover-project/drover/network"
)

func TestNetworksOfCNIAreOffered(t *testing.T) {
	t.Parallel()
	n := &drover.Node{Attributes: map[string]string{"a": "b"}, NodeResources: &drover.NodeResources{
		Networks:     []*network.Resource{{Mode: "host", IP: "192.0.2.1"}},
		NodeNetworks: []*drover.NodeNetworkResource{{Mode: "host", Device: "eth0"}},
	}}
	before := *n
	offerNetworks(n, cni.Found{
		Plugins: map[string]string{"bridge": "1.1.1"}, Networks: map[string]string{"b": "", "a": "", "broken": "no plugin"},
	})
	require.Equal(t, map[string]string{
		"a": "b", "plugins.cni.version.bridge": "1.1.1", "plugins.cni.network.broken.missing": "no plugin",
	}, n.Attributes)
	want := []*drover.NodeNetworkResource{{Mode: "host", Device: "eth0"}, {Mode: "cni/a"}, {Mode: "cni/b"}}
	require.Equal(t, want, n.NodeResources.NodeNetworks)
	require.Equal(t, []*network.Resource{{Mode: "host", IP: "192.0.2.1"}, {Mode: "cni/a"}, {Mode: "cni/b"}}, n.NodeResources.Networks)

	offerNetworks(n, cni.Found{})
	require.Equal(t, before.Attributes, n.Attributes)
	require.Equal(t, before.NodeResources, n.NodeResources)
}
