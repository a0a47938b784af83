package groupnet

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/cni"
	"github.com/drover-project/drover/internal/node/driver/sandbox/bridge"
	"github.com/drover-project/drover/network"
)

// plugin makes an interface in the namespace, as plugins do, and keeps a file for each address that it gave. It fails or hangs while a file
// of that name lies beside it.
const plugin = `#!/bin/sh
here=$(dirname "$0")/..
cat > /dev/null
[ -n "$CNI_COMMAND" ] || exit 0
echo "$CNI_COMMAND $CNI_NETNS" >> "$here/log"
if [ "$CNI_COMMAND" = DEL ]; then
	[ ! -f "$here/stuck" ] || { echo '{"msg": "the daemon is away"}'; exit 1; }
	rm -f "$here/leases/$CNI_CONTAINERID"
	[ -z "$CNI_NETNS" ] || nsenter --net="$CNI_NETNS" ip link del eth0 2> /dev/null
	exit 0
fi
mkdir -p "$here/leases"; echo > "$here/leases/$CNI_CONTAINERID"
[ ! -f "$here/fail" ] || { echo '{"msg": "no room"}'; exit 1; }
nsenter --net="$CNI_NETNS" ip link add eth0 type veth peer name eth1 || exit 1
nsenter --net="$CNI_NETNS" ip addr add 192.0.2.7/24 dev eth0 || exit 1
echo '{"cniVersion": "1.0.0", "interfaces": [{"name": "eth0", "sandbox": "'"$CNI_NETNS"'"}],
 "ips": [{"address": "192.0.2.7/24", "interface": 0}]}'
`

// cniBench has a network "mine" of that plugin.
type cniBench struct {
	*bench
	dir string
}

func newCNIBench(t *testing.T) *cniBench {
	t.Helper()
	b := newBench(t)
	dir, err := os.MkdirTemp("", "cni")
	require.NoError(t, err)
	for _, sub := range []string{"bin", "net"} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, sub), 0o755))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "bin", "plug"), []byte(plugin), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "net", "mine.conf"),
		[]byte(`{"cniVersion": "1.0.0", "name": "mine", "type": "plug"}`), 0o644))
	b.cfg.CNI = cni.New(cni.Config{
		Path: []string{filepath.Join(dir, "bin")}, ConfigDir: filepath.Join(dir, "net"), CacheDir: filepath.Join(dir, "cache"),
		Clock: clock.Wall{}, Log: slog.New(slog.DiscardHandler),
	})
	c := &cniBench{bench: b, dir: dir}
	t.Cleanup(func() {
		require.NoError(t, b.Sweep(context.Background(), func(string) bool { return false }))
		require.Empty(t, c.leases(t), "addresses left behind")
		require.NoError(t, os.RemoveAll(dir))
	})
	return c
}

// has makes or removes the file that the plugin looks for.
func (c *cniBench) has(t *testing.T, file string, there bool) {
	t.Helper()
	path := filepath.Join(c.dir, file)
	if there {
		require.NoError(t, os.WriteFile(path, nil, 0o644))
		return
	}
	require.NoError(t, os.Remove(path))
}

func (c *cniBench) leases(t *testing.T) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(c.dir, "leases", "*"))
	require.NoError(t, err)
	return list
}

func (c *cniBench) restart(t *testing.T) *cniBench {
	t.Helper()
	return &cniBench{bench: c.bench.restart(t), dir: c.dir}
}

func cniGroup(drivers ...string) (*drover.Allocation, *drover.TaskGroup) {
	alloc, g := group(drivers...)
	g.Networks[0].Mode = "cni/mine"
	return alloc, g
}

func TestAGroupInACNINetwork(t *testing.T) {
	t.Parallel()
	for _, drivers := range [][]string{{"sandbox"}, {"exec"}, {"java", "exec"}, {"raw_exec", "sandbox"}, {"docker", "raw_exec"}} {
		b := newCNIBench(t)
		alloc, g := cniGroup(drivers...)
		alloc.AllocatedResources.Shared.Ports = []network.PortMapping{{Label: "p", Value: 1, HostIP: "127.0.0.1"}}
		ns, err := b.Join(t.Context(), alloc, g, g.Tasks[0])
		require.NoError(t, err, drivers)
		require.Contains(t, ns.Note, "maps no ports")
		require.Contains(t, in(t, ns.Path, "ip", "-4", "addr"), "192.0.2.7/24")
		require.Contains(t, in(t, ns.Path, "ip", "link", "show", "lo"), "UP")
		want := &network.Status{InterfaceName: "eth0", Address: "192.0.2.7"}
		require.Equal(t, want, ns.Status)
		later := b.restart(t)
		require.Equal(t, want, later.Status(alloc.ID))
		again, err := later.Join(t.Context(), alloc, g, g.Tasks[len(drivers)-1])
		require.NoError(t, err)
		require.Equal(t, ns.Path, again.Path)
		require.Empty(t, again.Note)
		require.Len(t, b.leases(t), 1)
		require.NoError(t, later.Leave(t.Context(), alloc.ID))
		require.Empty(t, b.leases(t))
		require.False(t, bridge.HasNamespace(ns.Path))
		require.NoError(t, b.Leave(t.Context(), alloc.ID)) // the first agent's memory of it
	}
}

func TestAPluginThatFailsLeavesNothing(t *testing.T) {
	t.Parallel()
	b := newCNIBench(t)
	alloc, g := cniGroup("raw_exec")
	b.has(t, "fail", true)
	_, err := b.Join(t.Context(), alloc, g, g.Tasks[0])
	require.EqualError(t, err, `network of the group: CNI network "mine": plugin type="plug" name="mine" failed (add): no room`)
	require.Empty(t, b.leases(t))
	require.Nil(t, b.Status(alloc.ID))
	left, err := filepath.Glob(filepath.Join(b.cfg.Dir, "*"))
	require.NoError(t, err)
	require.Empty(t, left)
	b.has(t, "fail", false)
	_, err = b.Join(t.Context(), alloc, g, g.Tasks[0])
	require.NoError(t, err)
}

func TestWhatCannotBeUndoneIsTriedAgain(t *testing.T) {
	t.Parallel()
	b := newCNIBench(t)
	alloc, g := cniGroup("raw_exec")
	b.has(t, "fail", true)
	b.has(t, "stuck", true)
	_, err := b.Join(t.Context(), alloc, g, g.Tasks[0])
	require.ErrorContains(t, err, "no room")
	require.Len(t, b.leases(t), 1)
	_, err = b.Join(t.Context(), alloc, g, g.Tasks[0])
	require.ErrorContains(t, err, "failed (delete): the daemon is away")
	b.has(t, "fail", false)
	b.has(t, "stuck", false)
	ns, err := b.Join(t.Context(), alloc, g, g.Tasks[0])
	require.NoError(t, err)

	b.has(t, "stuck", true)
	require.ErrorContains(t, b.Leave(t.Context(), alloc.ID), "the daemon is away")
	require.False(t, bridge.HasNamespace(ns.Path), "the namespace itself is given up")
	later := b.restart(t)
	require.Len(t, b.leases(t), 1)
	b.has(t, "stuck", false)
	require.NoError(t, later.Sweep(t.Context(), func(string) bool { return false }))
	require.Empty(t, b.leases(t))
	require.NoError(t, b.Leave(t.Context(), alloc.ID))
}

func TestAnAgentKilledInTheMiddle(t *testing.T) {
	t.Parallel()
	for _, wanted := range []bool{true, false} {
		b := newCNIBench(t)
		alloc, g := cniGroup("raw_exec")
		// What a killed agent leaves: a record, a namespace, and whatever the plugin had done.
		s := b.shared(alloc.ID)
		require.NoError(t, b.describe(s, alloc, g))
		require.NoError(t, bridge.NewNamespace(b.path(alloc.ID)))
		require.NoError(t, os.Mkdir(filepath.Join(b.dir, "leases"), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(b.dir, "leases", alloc.ID), nil, 0o644))
		later := b.restart(t)
		require.Nil(t, later.Status(alloc.ID))
		if wanted {
			ns, err := later.Join(t.Context(), alloc, g, g.Tasks[0])
			require.NoError(t, err)
			require.Contains(t, in(t, ns.Path, "ip", "-4", "addr"), "192.0.2.7/24")
			require.Len(t, b.leases(t), 1)
			log, err := os.ReadFile(filepath.Join(b.dir, "log"))
			require.NoError(t, err)
			require.Equal(t, fmt.Sprintf("DEL %s\nADD %s\n", ns.Path, ns.Path), string(log))
		}
		require.NoError(t, later.Sweep(t.Context(), func(string) bool { return false }))
		require.Empty(t, b.leases(t))
		require.NoError(t, b.Leave(t.Context(), alloc.ID))
	}
}

func TestWhoCannotBeInACNINetwork(t *testing.T) {
	t.Parallel()
	b := newCNIBench(t)
	alloc, g := cniGroup("virt", "raw_exec", "mock_driver", "docker")
	_, err := b.Join(t.Context(), alloc, g, g.Tasks[0])
	require.ErrorContains(t, err, `driver virt cannot put a task into the CNI network "mine"`)
	require.Equal(t, drover.Invalid, drover.CodeOf(err))
	g.Tasks[3].Config = map[string]any{"network_mode": "none"}
	for _, i := range []int{2, 3} {
		ns, err := b.Join(t.Context(), alloc, g, g.Tasks[i])
		require.NoError(t, err)
		require.Nil(t, ns)
	}
	g.Networks[0].Mode = "cni/other"
	_, err = b.Join(t.Context(), alloc, g, g.Tasks[1])
	require.ErrorContains(t, err, `there is no CNI network "other"`)
	b.cfg.CNI = nil
	_, err = b.Join(t.Context(), alloc, g, g.Tasks[1])
	require.ErrorContains(t, err, "no CNI networks")
	require.Equal(t, cni.Found{}, b.Look(t.Context()))
}

// projects are where the plugins of the CNI project are, as Debian has them.
const projects = "/usr/lib/cni"

func TestThePluginsOfTheCNIProject(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	require.DirExists(t, projects, "the tests need the package containernetworking-plugins: make deps")
	dir, err := os.MkdirTemp("", "cni")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	device := fmt.Sprintf("dcni%d", os.Getpid()%100000)
	conf := fmt.Sprintf(`{"cniVersion": "1.0.0", "name": "mine", "plugins": [{"type": "loopback"},
		{"type": "bridge", "bridge": %q, "isGateway": true, "ipam": {"type": "host-local", "dataDir": %q,
		"ranges": [[{"subnet": "192.0.2.0/24"}], [{"subnet": "2001:db8::/64"}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}`,
		device, filepath.Join(dir, "ipam"))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "mine.conflist"), []byte(conf), 0o644))
	b.cfg.CNI = cni.New(cni.Config{
		Path: []string{projects}, ConfigDir: dir, CacheDir: filepath.Join(dir, "cache"), Clock: clock.Wall{}, Log: slog.New(slog.DiscardHandler),
	})
	t.Cleanup(func() {
		left, err := filepath.Glob(filepath.Join(dir, "ipam", "mine", "[0-9]*"))
		require.NoError(t, err)
		require.Empty(t, left, "addresses left behind")
		require.NoError(t, exec.CommandContext(context.Background(), "ip", "link", "del", device).Run())
	})
	require.Contains(t, b.Look(t.Context()).Plugins, "bridge")
	alloc, g := cniGroup("raw_exec", "sandbox")
	ns, err := b.Join(t.Context(), alloc, g, g.Tasks[0])
	require.NoError(t, err)
	require.Equal(t, &network.Status{InterfaceName: "eth0", Address: "192.0.2.2", AddressIPv6: "2001:db8::2"}, ns.Status)
	addresses := in(t, ns.Path, "ip", "addr", "show", "eth0")
	require.True(t, strings.Contains(addresses, "192.0.2.2/24") && strings.Contains(addresses, "2001:db8::2/64"), addresses)
	require.NoError(t, b.Leave(t.Context(), alloc.ID))
}
