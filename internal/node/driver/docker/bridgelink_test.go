package docker

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/driver/drivertest"
	"github.com/drover-project/drover/internal/node/driver/sandbox/bridge"
	"github.com/drover-project/drover/internal/node/egress"
	"github.com/drover-project/drover/network"
)

// newBridgeBench has a bridge of its own, of which nothing may be left at the end.
func newBridgeBench(t *testing.T, change ...func(*Config)) *bench {
	t.Helper()
	name := drivertest.Bridge(t)
	var network *bridge.Network
	b := newBench(t, append(change, func(c *Config) {
		network = bridge.New(bridge.Config{Name: name, Subnet: drivertest.Subnet(32), Egress: egress.Default(), Clock: clock.Wall{}, Log: c.Log})
		c.Bridge = network
	})...)
	t.Cleanup(func() {
		require.NoError(t, network.Close())
		links, err := exec.Command("ip", "-o", "link").Output()
		require.NoError(t, err)
		require.NotContains(t, string(links), name)
	})
	return b
}

func (b *bench) wired(t *testing.T, config map[string]any, ports ...network.PortMapping) *handle {
	t.Helper()
	config["network_mode"] = ""
	spec := b.spec(t, config)
	spec.Pool, spec.Ports = true, ports
	h := b.run(t, spec)
	require.NotNil(t, h.Network())
	return h
}

// TestRunnersAreBehindTheRulesOfSandboxes: they reach neither the machine nor each other nor a cloud's metadata, have their
// ports, and keep them over an agent's restart.
func TestRunnersAreBehindTheRulesOfSandboxes(t *testing.T) {
	t.Parallel()
	behindTheRules(t, newBridgeBench(t))
}

func behindTheRules(t *testing.T, b *bench) {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	port := free.Addr().(*net.TCPAddr).Port
	require.NoError(t, free.Close())
	server := b.wired(t, map[string]any{"ports": []any{"http"}},
		network.PortMapping{Label: "http", Value: port, To: 8080, HostIP: "127.0.0.1"})
	_, err = server.StartExecution(
		t.Context(),
		execution.Spec{ID: "s", KeepTree: true, Argv: []string{"/bin/sh", "-c", "echo served > /tmp/index.html; exec httpd -f -p 8080 -h /tmp"}},
	)
	require.NoError(t, err)
	served := func() bool {
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Second}
		r, err := client.Get(fmt.Sprintf("http://127.0.0.1:%d/index.html", port))
		if err != nil {
			return false
		}
		defer r.Body.Close()
		text, err := io.ReadAll(r.Body)
		return err == nil && string(text) == "served\n"
	}
	require.Eventually(t, served, patience, tick)

	all, err := net.Listen("tcp4", "0.0.0.0:0") // a service of the machine
	require.NoError(t, err)
	t.Cleanup(func() { _ = all.Close() })
	service := all.Addr().(*net.TCPAddr).Port
	other := b.wired(t, map[string]any{})
	for _, to := range []string{
		server.Network().Address + " 8080", fmt.Sprintf("%s %d", b.cfg.Bridge.Gateway(), service), "169.254.169.254 80",
		fmt.Sprintf("%s %d", machineAddress(t), service),
	} {
		require.Equal(t, "closed\n", drivertest.Root(t, other, "nc -w 1 "+to+" </dev/null >/dev/null 2>&1 && echo open || echo closed").Out, to)
	}
	require.Equal(
		t,
		"no\n",
		drivertest.Root(t, other, "ping -c 1 -w 1 "+server.Network().Address+" >/dev/null 2>&1 && echo yes || echo no").Out,
		"there are no raw sockets",
	)

	server.box.link.forward.Close() // as with the agent's end
	require.NoError(t, server.Last().Close())
	require.False(t, served())
	later := b.restart(t)
	h, err := later.Attach(t.Context(), server.State())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, h.Destroy(context.Background())) })
	require.Equal(t, server.Network().Address, h.Network().Address)
	require.Eventually(t, served, patience, tick)
	require.NoError(t, h.Destroy(t.Context()))
	require.NoDirExists(t, "/sys/class/net/"+bridge.Device(server.box.link.address))
}

// machineAddress is one of the machine's that is not the bridge's.
func machineAddress(t *testing.T) string {
	t.Helper()
	list, err := net.InterfaceAddrs()
	require.NoError(t, err)
	for _, a := range list {
		if ip := a.(*net.IPNet).IP; ip.To4() != nil && !ip.IsLoopback() && !ip.IsLinkLocalUnicast() {
			return ip.String()
		}
	}
	return "127.0.0.1"
}

// TestNetworkOfAKernelOfItsOwn is made before it starts, in a container that goes with it. Debian's gVisor has no network on
// newer kernels, so only that is looked at.
func TestNetworkOfAKernelOfItsOwn(t *testing.T) {
	t.Parallel()
	b := newBridgeBench(t)
	h := b.wired(t, map[string]any{"runtime": "runsc"})
	require.Len(t, b.containers(t), 2)
	require.Equal(t, "ok\n", drivertest.Sh(t, h, "echo ok").Out)
	require.NoError(t, h.Last().Close())
	later := b.restart(t)
	again, err := later.Attach(t.Context(), h.State())
	require.NoError(t, err)
	require.True(t, later.known[h.box.link.holder])
	require.NoError(t, again.Destroy(t.Context()))
	require.Empty(t, b.containers(t))
}

// TestAFailedStartGivesItsNetworkBack.
func TestAFailedStartGivesItsNetworkBack(t *testing.T) {
	t.Parallel()
	b := newBridgeBench(t)
	for _, config := range []map[string]any{{"image": "127.0.0.1:1/none:1"}, {"ports": []any{"http"}}, {"command": "/no/such/program"}} {
		config["network_mode"] = ""
		spec := b.spec(t, config)
		spec.Pool = true
		_, err := b.Start(t.Context(), spec)
		var start *driver.StartError
		require.ErrorAs(t, err, &start, "%v", config)
	}
	require.NoError(t, b.cfg.Bridge.Close())
}
