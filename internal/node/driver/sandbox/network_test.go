package sandbox

import (
	"bufio"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/driver/drivertest"
	"github.com/drover-project/drover/internal/node/driver/sandbox/bridge"
	"github.com/drover-project/drover/internal/node/egress"
	"github.com/drover-project/drover/network"
)

// newBridgeBench has a bridge of its own, of which nothing may be left at the end.
func newBridgeBench(t testing.TB, change ...func(*bridge.Config)) *bench {
	t.Helper()
	name, subnet := drivertest.Bridge(t), drivertest.Subnet(28)
	var network bridge.Config
	b := newBench(t, func(c *Config) {
		network = bridge.Config{Name: name, Subnet: subnet, Egress: egress.Default(), Clock: c.Clock, Log: c.Log}
		for _, change := range change {
			change(&network)
		}
		c.Bridge = bridge.New(network)
	})
	b.network = network
	t.Cleanup(func() {
		require.NoError(t, b.Close())
		links, err := exec.Command("ip", "-o", "link").Output()
		require.NoError(t, err)
		require.NotContains(t, string(links), name)
		first := bridge.Device(subnet.Addr())
		require.NotContains(t, string(links), first[:len(first)-2], "pairs left behind")
		rules, err := exec.Command("nft", "list", "tables").Output()
		require.NoError(t, err)
		require.NotContains(t, string(rules), name)
		rules, err = exec.Command("iptables-save").Output()
		require.NoError(t, err)
		require.NotContains(t, string(rules), name)
	})
	return b
}

const echoServer = `python3 -c '
import socket
s = socket.create_server(("0.0.0.0", 8080))
print("ready", flush=True)
while True:
    c, peer = s.accept()
    data = c.recv(100)
    c.sendall(b"got " + data)
    c.close()'`

// dial is what a guest runs to reach an address within so many seconds; it prints the answer.
func dial(address string, port, patience int) string {
	return fmt.Sprintf(
		`python3 -c 'import socket; s = socket.create_connection(("%s", %d), %d); s.sendall(b"hello"); print(s.recv(100).decode())'`,
		address,
		port,
		patience,
	)
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// outside makes a network namespace behind the machine that knows no way to the bridge's addresses, with an echo
// server at the returned address.
func outside(t *testing.T) string {
	t.Helper()
	var r [2]byte
	_, _ = rand.Read(r[:]) // never fails
	prefix, device := fmt.Sprintf("10.%d.%d", 100+r[0]%100, r[1]), fmt.Sprintf("do%x", r)
	server := exec.Command("/bin/sh", "-c", echoServer)
	server.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL, Setpgid: true}
	out, err := server.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, server.Start())
	t.Cleanup(func() { _ = syscall.Kill(-server.Process.Pid, syscall.SIGKILL); _ = server.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "ready\n", line)
	for _, c := range []string{
		fmt.Sprintf("ip link add %s type veth peer name eth0 netns %d", device, server.Process.Pid),
		fmt.Sprintf("ip addr add %s.1/24 dev %s", prefix, device), fmt.Sprintf("ip link set %s up", device),
		fmt.Sprintf("nsenter -t %d -n ip addr add %s.2/24 dev eth0", server.Process.Pid, prefix),
		fmt.Sprintf("nsenter -t %d -n ip link set eth0 up", server.Process.Pid),
	} {
		got, err := exec.Command("/bin/sh", "-c", c).CombinedOutput()
		require.NoError(t, err, "%s: %s", c, got)
	}
	t.Cleanup(func() { _ = exec.Command("ip", "link", "del", device).Run() })
	return prefix + ".2"
}

func TestBridge(t *testing.T) {
	t.Parallel()
	for _, firewall := range []string{"nft", "iptables"} {
		t.Run(firewall, func(t *testing.T) {
			t.Parallel()
			bridged(t, newBridgeBench(t, func(c *bridge.Config) { c.Firewall = firewall }))
		})
	}
}

func bridged(t *testing.T, b *bench) {
	t.Helper()
	port := freePort(t)
	spec := b.spec(t, map[string]any{"command": "/bin/sh", "args": []any{"-c", echoServer}, "network_mode": "bridge"})
	spec.Ports = []network.PortMapping{{Label: "http", Value: port, To: 8080, HostIP: "127.0.0.1"}}
	spec.Networks = []*network.Resource{{Mode: "bridge", Hostname: "called-so"}}
	h := b.run(t, spec)
	require.Equal(t, "called-so "+h.Network().Address+":8080\n", drivertest.Sh(t, h, "echo $(hostname) $NOMAD_ALLOC_ADDR_http").Out)
	address := h.Network().Address
	require.Equal(t, "eth0", h.Network().InterfaceName)
	var answer string
	require.Eventually(t, func() bool { answer = ask(port); return answer != "" }, time.Minute, 20*time.Millisecond)
	require.Equal(t, "got hello", answer)

	pool := b.spec(t, nil)
	pool.Pool, pool.Networks = true, []*network.Resource{{Mode: "bridge"}}
	other := b.run(t, pool)
	require.NotEqual(t, address, other.Network().Address)
	behind := outside(t)
	refused(t, other, "a private network behind the machine", dial(behind, 8080, 2))
	require.Equal(t, "got hello\n", drivertest.Sh(t, h, dial(behind, 8080, 60)).Out, "a job's task gets there, through address translation")
	refused(t, other, "a neighbour's port", dial(address, 8080, 2))
	l, err := net.Listen("tcp", "0.0.0.0:0") // on all addresses, so that only the rules can refuse
	require.NoError(t, err)
	defer l.Close()
	refused(t, other, "a port of the machine", dial(b.bridge.Gateway().String(), l.Addr().(*net.TCPAddr).Port, 2))
	refused(t, other, "link-local addresses", dial("169.254.169.254", 80, 2))
	refused(t, other, "taking another address", "ip addr add "+address+"/24 dev eth0 || python3 -c 'import socket, struct, fcntl; "+
		`s = socket.socket(); fcntl.ioctl(s, 0x8916, struct.pack("16sH2s4s8s", b"eth0", 2, b"", socket.inet_aton("`+address+`"), b""))'`)
}

// TestTheProgramKnowsItsAddress: only executions in the sandbox did, as the program's environment was made before the address was taken.
func TestTheProgramKnowsItsAddress(t *testing.T) {
	t.Parallel()
	b := newBridgeBench(t)
	spec := b.spec(t, map[string]any{
		"command": "/bin/sh", "args": []any{"-c", "echo $NOMAD_ALLOC_ADDR_http; sleep 1000"}, "network_mode": "bridge",
	})
	spec.Ports = []network.PortMapping{{Label: "http", Value: freePort(t), To: 8080, HostIP: "127.0.0.1"}}
	h := b.run(t, spec)
	require.Eventually(t, func() bool {
		said, err := os.ReadFile(filepath.Join(spec.Log.Dir, "t.stdout.0"))
		return err == nil && string(said) == h.Network().Address+":8080\n"
	}, time.Minute, 20*time.Millisecond)
}

// ask sends hello to a port of the machine.
func ask(port int) string {
	c, err := net.Dial("tcp", "127.0.0.1:"+strconv.Itoa(port))
	if err != nil {
		return ""
	}
	defer c.Close()
	_, _ = io.WriteString(c, "hello")
	answer, _ := io.ReadAll(c)
	return string(answer)
}

// TestDatagrams: what comes on a port reaches the sandbox, and its answers the right one of those who sent.
func TestDatagrams(t *testing.T) {
	t.Parallel()
	b := newBridgeBench(t)
	port := freePort(t)
	spec := b.spec(t, map[string]any{"command": "/bin/sh", "network_mode": "bridge", "args": []any{"-c", `python3 -c '
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("0.0.0.0", 5353))
while True:
    data, peer = s.recvfrom(65536)
    s.sendto(b"got " + data, peer)'`}})
	spec.Ports = []network.PortMapping{{Label: "dns", Value: port, To: 5353, HostIP: "127.0.0.1"}}
	h := b.run(t, spec)
	var peers []net.Conn
	for range 3 {
		c, err := net.Dial("udp", "127.0.0.1:"+strconv.Itoa(port))
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		peers = append(peers, c)
	}
	say := func(c net.Conn, text string) string {
		_, _ = io.WriteString(c, text) // while nobody listens yet, an earlier one is told as refused
		_ = c.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
		buf := make([]byte, 1<<16)
		n, _ := c.Read(buf)
		return string(buf[:n])
	}
	require.Eventually(t, func() bool { return say(peers[0], "0") == "got 0" }, time.Minute, 20*time.Millisecond)
	for i, c := range peers {
		for round := range 3 {
			text := fmt.Sprintf("%d.%d %s", i, round, strings.Repeat("x", 1000*round))
			require.Eventually(t, func() bool { return say(c, text) == "got "+text }, time.Minute, 10*time.Millisecond)
		}
	}
	require.NoError(t, h.Destroy(t.Context()))
	require.Empty(t, say(peers[0], "x"), "it is over with the sandbox")
}

func TestBridgeAfterAnAgentRestart(t *testing.T) {
	t.Parallel()
	b := newBridgeBench(t)
	port := freePort(t)
	spec := b.spec(t, map[string]any{"command": "/bin/sh", "args": []any{"-c", echoServer}, "network_mode": "bridge"})
	spec.Ports = []network.PortMapping{{Label: "http", Value: port, To: 8080, HostIP: "127.0.0.1"}}
	first, err := b.Start(t.Context(), spec)
	require.NoError(t, err)
	first.(*handle).box.net.forward.Close() // as the agent's end does
	require.NoError(t, first.(*handle).Last().Close())
	cfg := b.cfg
	cfg.Bridge = bridge.New(b.network)
	d := New(cfg)
	h, err := d.Attach(t.Context(), first.State())
	require.NoError(t, err)
	require.Equal(t, first.Network(), h.Network())
	require.Eventually(t, func() bool { return ask(port) == "got hello" }, time.Minute, 20*time.Millisecond)
	taken, err := d.bridge.Take(bridge.Runners)
	require.NoError(t, err)
	require.NotEqual(t, h.Network().Address, taken.String(), "its address is not given out twice")
	require.NoError(t, h.Destroy(context.Background()))
	require.NoError(t, h.Destroy(context.Background()), "idempotent")
	require.NoError(t, b.bridge.Disconnect(t.Context(), netip.MustParseAddr(first.Network().Address)))
	require.NoError(t, d.bridge.Disconnect(t.Context(), taken))
	require.NoError(t, d.Close())
}

func TestPortThatIsTaken(t *testing.T) {
	t.Parallel()
	b := newBridgeBench(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	spec := b.spec(t, map[string]any{"command": "/bin/true", "network_mode": "bridge", "ports": []any{"http"}})
	_, err = b.Start(t.Context(), spec)
	require.ErrorContains(t, err, `no port "http"`)
	spec.Ports = []network.PortMapping{{Label: "http", Value: l.Addr().(*net.TCPAddr).Port, HostIP: "127.0.0.1"}}
	_, err = b.Start(t.Context(), spec)
	e := (*driver.StartError)(nil)
	require.ErrorAs(t, err, &e)
	require.True(t, e.Recoverable)
	require.ErrorContains(t, err, `forwarding port "http"`)
	require.NoDirExists(t, spec.Dirs.State)
}

func TestNetworkModes(t *testing.T) {
	t.Parallel()
	group := func(mode string) *driver.Spec { return &driver.Spec{Networks: []*network.Resource{{Mode: mode}}} }
	pool := group("host")
	pool.Pool = true
	require.Equal(t, "none", networkMode(taskConfig{}, &driver.Spec{}))
	require.Equal(t, "host", networkMode(taskConfig{}, group("host")))
	require.Equal(t, "host", networkMode(taskConfig{}, group("")))
	require.Equal(t, "bridge", networkMode(taskConfig{}, group("bridge")))
	require.Equal(t, "none", networkMode(taskConfig{}, group("none")))
	require.Equal(t, "none", networkMode(taskConfig{}, pool), "unknown code gets the machine's network only on request")
	require.Equal(t, "none", networkMode(taskConfig{network: "none"}, group("host")))
}

// TestTheMachinesNetworkNeedsLeave: W3 of the review of 2026-11-22. Any job's task shared the machine's network, and so reached
// the agent's own port, and the abstract sockets of the machine's programs.
func TestTheMachinesNetworkNeedsLeave(t *testing.T) {
	t.Parallel()
	b := newBridgeBench(t)
	err := b.Validate(&drover.Task{Config: map[string]any{"network_mode": "host"}})
	require.ErrorContains(t, err, `network_mode: host needs allow_host_network on this node (plugin "sandbox"`)
	require.Equal(t, "false", b.Fingerprint(t.Context()).Attributes["driver.sandbox.allow_host_network"])
	require.Equal(t, "true", b.Fingerprint(t.Context()).Attributes["driver.sandbox.network.host"], "else no such group would be placed")
	port := freePort(t)
	spec := b.spec(t, map[string]any{"command": "/bin/sh", "args": []any{"-c", echoServer}})
	spec.Networks = []*network.Resource{{Mode: "host"}}
	spec.Ports = []network.PortMapping{{Label: "http", Value: port, To: 8080, HostIP: "127.0.0.1"}}
	h := b.run(t, spec)
	require.NotEmpty(t, h.Network().Address, "it is on the bridge")
	require.Eventually(t, func() bool { return ask(port) == "got hello" }, time.Minute, 20*time.Millisecond)
	refused(t, h, "a port of the machine's localhost", dial("127.0.0.1", port, 2))
	b.cfg.AllowHostNetwork = true
	require.NoError(t, b.Validate(&drover.Task{Config: map[string]any{"network_mode": "host"}}))
	mode, err := b.chooseNetwork(taskConfig{}, &spec)
	require.NoError(t, err)
	require.Equal(t, networkHost, mode)
}

// TestManyBridged: addresses, pairs and rules hold with many that come and go at once.
func TestManyBridged(t *testing.T) {
	t.Parallel()
	b := newBridgeBench(t)
	start := time.Now()
	done := make(chan error)
	for range 20 {
		go func() { // ends with its sandbox
			spec := b.spec(t, map[string]any{"network_mode": "bridge"})
			spec.Pool = true
			h, err := b.Start(context.Background(), spec)
			if err == nil {
				err = h.Destroy(context.Background())
			}
			done <- err
		}()
	}
	for range 20 {
		require.NoError(t, <-done)
	}
	t.Logf("20 started and removed in %v", time.Since(start))
}

// BenchmarkBridged starts and removes sandboxes on a bridge, 8 at once.
func BenchmarkBridged(b *testing.B) {
	d := newBridgeBench(b)
	b.SetParallelism(4)
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			spec := d.spec(b, map[string]any{"network_mode": "bridge"})
			spec.Pool = true
			start := time.Now()
			h, err := d.Start(context.Background(), spec)
			if err == nil {
				b.ReportMetric(float64(time.Since(start).Milliseconds()), "last-start-ms")
				err = h.Destroy(context.Background())
			}
			if err != nil {
				b.Error(err)
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "started+removed/s")
}
