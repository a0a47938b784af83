package groupnet

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/node/driver/drivertest"
	"github.com/drover-project/drover/internal/node/driver/sandbox/bridge"
	"github.com/drover-project/drover/internal/node/egress"
	"github.com/drover-project/drover/internal/sharetest"
	"github.com/drover-project/drover/network"
)

// The bounds of waiting for what others do.
const (
	patience = time.Minute
	tick     = 10 * time.Millisecond
)

func TestMain(m *testing.M) {
	drivertest.SweepGroupParents()
	goleak.VerifyTestMain(m)
}

// bench has a bridge and a folder of its own, of which nothing may be left at the end.
type bench struct {
	*Networks
	bridge *bridge.Network
	holder *holder
}

func newBench(t *testing.T) *bench {
	t.Helper()
	sharetest.Take(t)
	name := drivertest.Bridge(t)
	br := bridge.New(bridge.Config{
		Name: name, Subnet: drivertest.Subnet(20), Egress: egress.Default(), Clock: clock.Wall{}, Log: slog.New(slog.DiscardHandler),
	})
	if why := br.Missing(); why != "" {
		require.NotEqual(t, "true", os.Getenv("CI"), why)
		t.Skip(why)
	}
	b := &bench{bridge: br, holder: &holder{pids: map[string]*exec.Cmd{}}}
	b.Networks = New(
		Config{Dir: filepath.Join(t.TempDir(), "netns"), Bridge: br, Holder: b.holder, Clock: clock.Wall{}, Log: slog.New(slog.DiscardHandler)},
	)
	t.Cleanup(func() {
		require.NoError(t, b.Sweep(context.Background(), func(string) bool { return false }))
		require.Empty(t, b.holder.pids, "containers left behind")
		left, err := filepath.Glob(filepath.Join(b.cfg.Dir, "*"))
		require.NoError(t, err)
		require.Empty(t, left, "records or mounts left behind")
		require.NoError(t, b.Close())
		require.NoError(t, br.Close())
		_, err = net.InterfaceByName(name)
		require.Error(t, err, "the bridge was left behind")
	})
	return b
}

// restart is what a new agent has.
func (b *bench) restart(t *testing.T) *bench {
	t.Helper()
	require.NoError(t, b.Close())
	fresh := &bench{Networks: New(b.cfg), bridge: b.bridge, holder: b.holder}
	require.NoError(t, fresh.Restore())
	return fresh
}

// holder holds namespaces with processes, as docker does with containers.
type holder struct {
	mu   sync.Mutex
	pids map[string]*exec.Cmd // guarded by mu
	kept []string             // guarded by mu
}

func (h *holder) HoldNetwork(ctx context.Context, name, _ string) (int, error) {
	if err := h.LetGoNetwork(ctx, name); err != nil {
		return 0, err
	}
	c := exec.Command("unshare", "--net", "sh", "-c", "ip link set lo up; echo; exec sleep 1000")
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err == nil {
		_, err = out.Read(make([]byte, 1)) // it is in there
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pids[name] = c
	return c.Process.Pid, err
}

func (h *holder) NetworkHeld(_ context.Context, name string) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c := h.pids[name]; c != nil {
		return c.Process.Pid, nil
	}
	return 0, nil
}

func (h *holder) KeepNetwork(name string) { h.kept = append(h.kept, name) }

func (h *holder) LetGoNetwork(_ context.Context, name string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c := h.pids[name]; c != nil {
		_ = c.Process.Kill()
		_ = c.Wait()
		delete(h.pids, name)
	}
	return nil
}

// group of tasks of these drivers, and an allocation of it with a port.
func group(drivers ...string) (*drover.Allocation, *drover.TaskGroup) {
	g := &drover.TaskGroup{Name: "g", Networks: []*network.Resource{{Mode: "bridge"}}}
	for i, d := range drivers {
		g.Tasks = append(g.Tasks, &drover.Task{Name: fmt.Sprint("t", i), Driver: d})
	}
	return &drover.Allocation{ID: id.Random{}.New(), AllocatedResources: &drover.AllocatedResources{}}, g
}

// in runs a command in a namespace.
func in(t *testing.T, path string, argv ...string) string {
	t.Helper()
	out, err := exec.Command("nsenter", append([]string{"--net=" + path}, argv...)...).CombinedOutput()
	require.NoError(t, err, string(out))
	return string(out)
}

func TestTasksShareANamespace(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	alloc, g := group("sandbox", "raw_exec")
	first, err := b.Join(t.Context(), alloc, g, g.Tasks[0])
	require.NoError(t, err)
	second, err := b.Join(t.Context(), alloc, g, g.Tasks[1])
	require.NoError(t, err)
	require.Equal(t, first, second)
	require.Empty(t, first.Container)
	require.True(t, bridge.HasNamespace(first.Path))
	address := b.Status(alloc.ID).Address
	require.Contains(t, in(t, first.Path, "ip", "-4", "addr"), address)
	require.Contains(t, in(t, first.Path, "ip", "link", "show", "lo"), "UP")
	require.Equal(t, "0", strings.TrimSpace(in(t, first.Path, "cat", "/proc/sys/net/ipv4/ip_unprivileged_port_start")))

	require.NoError(t, b.Leave(t.Context(), alloc.ID))
	require.NoError(t, b.Leave(t.Context(), alloc.ID))
	require.False(t, bridge.HasNamespace(first.Path))
	require.Nil(t, b.Status(alloc.ID))
}

func TestWhoHasANamespaceOfItsOwn(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	_, lone := group("sandbox")
	_, hosts := group("docker", "docker")
	hosts.Networks[0].Mode = "host"
	_, warm := group("docker", "docker")
	warm.Pool = &drover.WarmPool{}
	_, other := group("docker", "mock_driver")
	_, says := group("docker", "docker")
	says.Tasks[0].Config = map[string]any{"network_mode": "none"}
	alloc := &drover.Allocation{ID: id.Random{}.New()}
	for name, c := range map[string]struct {
		g *drover.TaskGroup
		t int
	}{
		"the only sandbox": {lone, 0}, "mode host": {hosts, 0}, "a warm runner": {warm, 0}, "another driver's": {other, 1},
		"one that says so": {says, 0},
	} {
		ns, err := b.Join(t.Context(), alloc, c.g, c.g.Tasks[c.t])
		require.NoError(t, err, name)
		require.Nil(t, ns, name)
	}
}

func TestPortsLeadThereAlsoAfterAnAgentRestart(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	alloc, g := group("raw_exec", "raw_exec")
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	port := free.Addr().(*net.TCPAddr).Port
	require.NoError(t, free.Close())
	alloc.AllocatedResources.Shared.Ports = []network.PortMapping{{Label: "p", Value: port, To: 80, HostIP: "127.0.0.1"}}
	ns, err := b.Join(t.Context(), alloc, g, g.Tasks[0])
	require.NoError(t, err)
	server := exec.Command("nsenter", "--net="+ns.Path, "python3", "-uc", `
import socket
s = socket.create_server(("", 80))
print("ready")
while True:
    c, _ = s.accept(); c.sendall(b"hello"); c.close()`)
	out, err := server.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, server.Start())
	defer func() { _ = server.Process.Kill(); _ = server.Wait() }()
	_, err = out.Read(make([]byte, 16))
	require.NoError(t, err)
	said := func() string {
		c, err := net.Dial("tcp", fmt.Sprint("127.0.0.1:", port))
		require.NoError(t, err)
		defer c.Close()
		text := make([]byte, 5)
		_, err = c.Read(text)
		require.NoError(t, err)
		return string(text)
	}
	require.Equal(t, "hello", said())

	later := b.restart(t)
	require.Equal(t, "hello", said())
	require.NotNil(t, later.Status(alloc.ID))
	again, err := later.Join(t.Context(), alloc, g, g.Tasks[1])
	require.NoError(t, err)
	require.Equal(t, ns, again)
	require.NoError(t, later.Sweep(t.Context(), func(string) bool { return true }))
	require.True(t, bridge.HasNamespace(ns.Path))
	require.NoError(t, later.Sweep(t.Context(), func(string) bool { return false }))
	require.False(t, bridge.HasNamespace(ns.Path))
	require.NoError(t, later.Close())
}

func TestAPortThatIsTaken(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	alloc, g := group("sandbox", "sandbox")
	alloc.AllocatedResources.Shared.Ports = []network.PortMapping{{Label: "p", Value: taken.Addr().(*net.TCPAddr).Port, HostIP: "127.0.0.1"}}
	_, err = b.Join(t.Context(), alloc, g, g.Tasks[0])
	require.ErrorContains(t, err, `forwarding port "p"`)
	require.Equal(t, drover.Unavailable, drover.CodeOf(err))
}

func TestDockersPartIsMadeAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	alloc, g := group("docker", "sandbox")
	ns, err := b.Join(t.Context(), alloc, g, g.Tasks[0])
	require.NoError(t, err)
	name := containerName(alloc.ID)
	require.Equal(t, name, ns.Container)
	address := b.Status(alloc.ID).Address

	require.NoError(t, b.holder.LetGoNetwork(t.Context(), name)) // as a daemon that ends without live-restore
	other := exec.Command("nsenter", "--net="+ns.Path, "sleep", "1000")
	require.NoError(t, other.Start())
	defer func() { _ = other.Process.Kill(); _ = other.Wait() }()
	require.Eventually(t, func() bool { return occupied(ns.Path) }, patience, tick)
	_, err = b.Join(t.Context(), alloc, g, g.Tasks[0])
	require.Equal(t, drover.Conflict, drover.CodeOf(err), err)

	require.NoError(t, other.Process.Signal(syscall.SIGKILL))
	_ = other.Wait()
	again, err := b.Join(t.Context(), alloc, g, g.Tasks[0])
	require.NoError(t, err)
	require.Equal(t, ns, again)
	require.Equal(t, address, b.Status(alloc.ID).Address)
	require.Contains(t, in(t, ns.Path, "ip", "-4", "addr"), address)
}

// TestAnAgentKilledWhileItMadeANetwork: the namespace was there, and nothing in it. The next agent took that for the group's network, and
// its tasks ran without any.
func TestAnAgentKilledWhileItMadeANetwork(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	alloc, g := group("sandbox", "raw_exec")
	address, err := b.bridge.Take(bridge.Jobs)
	require.NoError(t, err)
	require.NoError(t, b.write(alloc.ID, record{Address: address.String(), Pending: true}))
	require.NoError(t, bridge.NewNamespace(b.path(alloc.ID)))

	later := b.restart(t)
	t.Cleanup(func() { require.NoError(t, later.Sweep(context.Background(), func(string) bool { return false })) })
	ns, err := later.Join(t.Context(), alloc, g, g.Tasks[0])
	require.NoError(t, err)
	require.Equal(t, address.String(), ns.Status.Address)
	require.Contains(t, in(t, ns.Path, "ip", "-4", "addr"), address.String())
	again := later.restart(t)
	same, err := again.Join(t.Context(), alloc, g, g.Tasks[1])
	require.NoError(t, err)
	require.Equal(t, ns, same, "it was not made again")
	require.NoError(t, again.Sweep(t.Context(), func(string) bool { return false }))
	require.False(t, bridge.HasNamespace(ns.Path))
}
