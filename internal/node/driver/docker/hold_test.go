package docker

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/driver/drivertest"
	"github.com/drover-project/drover/network"
)

// TestContainersShareANetwork: those of a group see each other on localhost, and a sweep of a later agent spares what
// holds it.
func TestContainersShareANetwork(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	name := "drover-network-" + id.Random{}.New()
	pid, err := b.HoldNetwork(t.Context(), name, "together")
	require.NoError(t, err)
	require.Positive(t, pid)
	t.Cleanup(func() { require.NoError(t, b.LetGoNetwork(context.Background(), name)) })
	held, err := b.NetworkHeld(t.Context(), name)
	require.NoError(t, err)
	require.Equal(t, pid, held)

	joined := func(config map[string]any) *handle {
		config["network_mode"] = ""
		spec := b.spec(t, config)
		spec.Pool = true
		spec.NetNS = &driver.NetNS{Container: name}
		spec.Networks = []*network.Resource{
			{Mode: "bridge", DNS: &network.DNSConfig{Servers: []string{"192.0.2.53"}, Searches: []string{"one.test"}}},
		}
		spec.Ports = []network.PortMapping{{Label: "http", Value: 4, To: 80}}
		return b.run(t, spec)
	}
	server, client := joined(script2("mkdir /w; echo served > /w/index.html; exec httpd -f -p 80 -h /w", map[string]any{
		"ports": []any{"http"}, "hostname": "ignored",
	})), joined(map[string]any{"extra_hosts": []any{"thing:10.9.8.7"}})
	require.Equal(
		t,
		"served\n",
		drivertest.Sh(t, client, "for i in $(seq 200); do wget -qO- http://127.0.0.1/ 2>/dev/null && break; sleep 0.05; done").Out,
	)
	require.Equal(t, "together\n", drivertest.Sh(t, client, "hostname").Out)
	require.Contains(t, drivertest.Sh(t, client, "cat /etc/hosts").Out, "10.9.8.7\tthing")
	require.Equal(t, "nameserver 192.0.2.53\nsearch one.test\n", drivertest.Sh(t, server, "cat /etc/resolv.conf").Out)

	later := b.restart(t)
	later.KeepNetwork(name)
	later.remember(server.box.id)
	later.remember(client.box.id)
	later.Restored(t.Context())
	held, err = b.NetworkHeld(t.Context(), name)
	require.NoError(t, err)
	require.Equal(t, pid, held)

	require.NoError(t, server.Destroy(t.Context()))
	require.NoError(t, client.Destroy(t.Context()))
	require.NoError(t, b.LetGoNetwork(t.Context(), name))
	require.NoError(t, b.LetGoNetwork(t.Context(), name))
	held, err = b.NetworkHeld(t.Context(), name)
	require.NoError(t, err)
	require.Zero(t, held)
}
