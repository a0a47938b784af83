package sandbox

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/driver/drivertest"
	"github.com/drover-project/drover/internal/node/driver/sandbox/bridge"
	"github.com/drover-project/drover/network"
)

// TestSandboxesShareANamespace: those of a group see each other on localhost, and may take its small ports.
func TestSandboxesShareANamespace(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	path := filepath.Join(t.TempDir(), "ns")
	require.NoError(t, bridge.NewNamespace(path))
	defer func() { require.NoError(t, bridge.DropNamespace(path)) }()
	joined := func(config map[string]any) *handle {
		spec := b.spec(t, config)
		spec.Pool, spec.NetNS = true, &driver.NetNS{Path: path}
		spec.Networks = []*network.Resource{{Mode: "bridge", DNS: &network.DNSConfig{Servers: []string{"192.0.2.53"}}}}
		return b.run(t, spec)
	}
	joined(map[string]any{"command": "python3", "args": []any{"-c", `
import socket
s = socket.create_server(("127.0.0.1", 80))
while True:
    c, _ = s.accept(); c.sendall(b"hello"); c.close()`}})
	other := joined(nil)
	r := drivertest.Sh(t, other, `for i in $(seq 200); do python3 -c '
import socket
print(socket.create_connection(("127.0.0.1", 80)).recv(5))' && break; sleep 0.05; done 2>/dev/null; cat /etc/resolv.conf`)
	require.Contains(t, r.Out, "b'hello'", r.Err)
	require.Contains(t, r.Out, "nameserver 192.0.2.53\n")
	r = drivertest.Sh(t, other, `ip link add dv0 type dummy || ip link set lo down || echo refused`)
	require.Contains(t, r.Out, "refused", "the namespace is not the guest's to change")
}
