package sandbox

import (
	"bufio"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/node/driver/drivertest"
	"github.com/drover-project/drover/internal/node/driver/sandbox/bridge"
	"github.com/drover-project/drover/network"
)

// bridgedRunner is a warm runner on the bridge.
func (b *bench) bridgedRunner(t *testing.T) *handle {
	t.Helper()
	spec := b.spec(t, nil)
	spec.Pool, spec.Networks = true, []*network.Resource{{Mode: "bridge"}}
	return b.run(t, spec)
}

// flood sends a datagram to each of so many ports, of two addresses.
func flood(to string, flows int) string {
	return fmt.Sprintf(`python3 -c '
import socket
s = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2)]
sent = 0
for i in range(%d):
    try:
        s[i %% 2].sendto(b"x", ("%s", 1024 + i // 2))
        sent += 1
    except OSError:
        pass
print(sent)'`, flows, to)
}

// tracked counts the connections of an address in the machine's table.
func tracked(t *testing.T, address string) (n int) {
	t.Helper()
	f, err := os.Open("/proc/net/nf_conntrack")
	require.NoError(t, err)
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if strings.Contains(lines.Text(), "src="+address+" ") {
			n++
		}
	}
	return n
}

// TestEgress: B9 and W4 of the review of 2026-11-22. One guest filled the machine's table of connections within seconds, and
// reached the operator's private networks.
func TestEgress(t *testing.T) {
	t.Parallel()
	for _, firewall := range []string{"nft", "iptables"} {
		t.Run(firewall, func(t *testing.T) {
			t.Parallel()
			behind, closed := outside(t), outside(t)
			b := newBridgeBench(t, func(c *bridge.Config) {
				c.Firewall, c.Egress.Connections = firewall, 100
				c.Egress.Allow = []netip.Prefix{netip.MustParsePrefix(behind + "/32")}
				c.Egress.Resolvers = func() []netip.Addr { return []netip.Addr{netip.MustParseAddr(closed)} }
			})
			h := b.bridgedRunner(t)
			require.NotContains(t, b.bridge.Weaker(), "does not bound", "the kernel of this machine counts")
			require.Equal(t, "got hello\n", drivertest.Sh(t, h, dial(behind, 8080, 60)).Out, "a network that is listed is open")
			start := time.Now()
			refused(t, h, "another one", dial(closed, 8080, 60))
			require.Less(t, time.Since(start), 30*time.Second, "it is told, and need not wait")
			require.Equal(
				t,
				"",
				drivertest.Sh(
					t,
					h,
					`python3 -c 'import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.connect(("`+closed+`", 53)); s.send(b"x")'`,
				).Err,
				"its name server can be asked",
			)

			require.Equal(t, "30000\n", drivertest.Sh(t, h, flood(behind, 30000)).Out, "to the guest nothing is wrong: its packets get lost")
			// The kernel counts connections that begin at once on two processors a little late.
			n := tracked(t, h.Network().Address)
			require.LessOrEqual(t, n, 110, "connections of one guest")
			require.Greater(t, n, 20)
			other := b.bridgedRunner(t)
			require.Equal(t, "got hello\n", drivertest.Sh(t, other, dial(behind, 8080, 60)).Out, "its neighbour feels nothing")
		})
	}
}

// TestGuestsHaveNoNeighbours: those that a guest looks for stand in a table of the whole machine, whose places are few.
func TestGuestsHaveNoNeighbours(t *testing.T) {
	t.Parallel()
	b := newBridgeBench(t)
	h := b.bridgedRunner(t)
	subnet := b.network.Subnet.Addr().String()
	drivertest.Sh(t, h, `python3 -c '
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for i in range(2, 250):
    try: s.sendto(b"x", ("`+strings.TrimSuffix(subnet, "0")+`%d" % i, 9))
    except OSError: pass'`)
	require.Equal(t, 1, strings.Count(drivertest.Sh(t, h, "cat /proc/net/arp").Out, "eth0"), "only the bridge's own")
}
