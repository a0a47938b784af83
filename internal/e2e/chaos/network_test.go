package chaos

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netns"

	"github.com/drover-project/drover/internal/node/driver/drivertest"
)

// spacePrefix begins the names of the namespaces; the number of the process that made them follows.
const spacePrefix = "drover-chaos-"

const (
	subnet  = "10.99.0."
	agents  = subnet + "0/25" // of servers and nodes; the clients are outside
	callers = subnet + "254"
)

// lan is namespaces that a bridge joins. Clients call from the bridge's own.
type lan struct {
	hub, home netns.NsHandle
	spaces    []string
}

func space(name string) string { return fmt.Sprint(spacePrefix, os.Getpid(), "-", name) }

// run runs a command of the system.
func run(name string, args ...string) error {
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, out)
	}
	return nil
}

// inside runs a command in the namespace of a host, which sees the machine's own mounts.
func inside(host string, command ...string) error {
	return run("nsenter", append([]string{"--net=/run/netns/" + space(host)}, command...)...)
}

// makeLAN makes the namespaces with these addresses, by host. The test takes them away.
func makeLAN(t *testing.T, addresses map[string]string) *lan {
	t.Helper()
	sweepSpaces()
	l := &lan{}
	t.Cleanup(l.remove)
	ip := func(args ...string) {
		t.Helper()
		require.NoError(t, run("ip", args...))
	}
	add := func(host string) {
		t.Helper()
		l.spaces = append(l.spaces, space(host))
		ip("netns", "add", space(host))
		ip("-n", space(host), "link", "set", "lo", "up")
	}
	hub := space("hub")
	add("hub")
	ip("-n", hub, "link", "add", "lan", "type", "bridge")
	ip("-n", hub, "addr", "add", callers+"/24", "dev", "lan")
	ip("-n", hub, "link", "set", "lan", "up")
	for host, address := range addresses {
		add(host)
		ip("-n", hub, "link", "add", host, "type", "veth", "peer", "name", "eth0", "netns", space(host))
		ip("-n", hub, "link", "set", host, "master", "lan", "up")
		ip("-n", space(host), "addr", "add", address+"/24", "dev", "eth0")
		ip("-n", space(host), "link", "set", "eth0", "up")
		ip("-n", space(host), "route", "add", "default", "via", callers)
	}
	var err error
	l.home, err = netns.Get()
	require.NoError(t, err)
	l.hub, err = netns.GetFromName(hub)
	require.NoError(t, err)
	return l
}

func (l *lan) remove() {
	_ = l.hub.Close()
	_ = l.home.Close()
	for _, s := range l.spaces {
		removeSpace(s)
	}
}

// removeSpace ends what runs in the namespace, and takes it away.
func removeSpace(name string) {
	out, _ := exec.Command("ip", "netns", "pids", name).Output() // none is left, or it is gone
	for _, text := range strings.Fields(string(out)) {
		if pid, err := strconv.Atoi(text); err == nil && pid > 1 && pid != os.Getpid() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	_ = run("ip", "netns", "del", name)
}

// sweepSpaces takes away the namespaces of runs that were killed.
func sweepSpaces() {
	found, _ := filepath.Glob("/run/netns/" + spacePrefix + "*")
	for _, path := range found {
		if drivertest.Abandoned(path, spacePrefix) {
			removeSpace(filepath.Base(path))
		}
	}
}

// dial connects from the clients' namespace. Sockets belong to the namespace that their thread is in when they are made.
func (l *lan) dial(ctx context.Context, network, address string) (conn net.Conn, err error) {
	runtime.LockOSThread()
	if err := netns.Set(l.hub); err != nil {
		runtime.UnlockOSThread()
		return nil, err
	}
	defer func() {
		if back := netns.Set(l.home); back != nil { // the thread stays locked, and ends with its goroutine
			err = errors.Join(err, back)
			return
		}
		runtime.UnlockOSThread()
	}()
	return (&net.Dialer{}).DialContext(ctx, network, address)
}

// deaf has a host hear nothing of these addresses.
func deaf(host string, to ...string) error {
	for _, address := range to {
		if err := inside(host, "iptables", "-w", "-A", "INPUT", "-s", address, "-j", "DROP"); err != nil {
			return err
		}
	}
	return nil
}

// lossy has a host lose a share of the packets from other agents.
func lossy(host string, share float64) error {
	return inside(host, "iptables", "-w", "-A", "INPUT", "-s", agents, "-m", "statistic", "--mode", "random",
		"--probability", fmt.Sprint(share), "-j", "DROP")
}

// hears has a host hear everything again.
func hears(host string) error { return inside(host, "iptables", "-w", "-F", "INPUT") }
