package bridge

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/flock"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/node/egress"
	"github.com/drover-project/drover/network"
)

// guest is a namespace on a bridge, whose root has all rights over it.
type guest struct {
	t      *testing.T
	a, six netip.Addr
	path   string
}

var networks atomic.Uint32 // those that were given

// bridged returns the configuration of a network of the test's own.
func bridged(t *testing.T) Config {
	t.Helper()
	r, n := id.Random{}.New(), uint8(networks.Add(1))
	return Config{
		Name: "dt" + r[:6], Subnet: netip.PrefixFrom(netip.AddrFrom4([4]byte{172, 29, uint8(os.Getpid()), n << 4}), 28), // cut on purpose
		Subnet6: netip.MustParsePrefix("fd29:" + r[:4] + "::/64"),
		Egress:  egress.Default(), Clock: clock.Wall{}, Log: slog.New(slog.DiscardHandler),
	}
}

// openNetwork returns a network with so many guests, of which nothing may be left at the end.
func openNetwork(t *testing.T, cfg Config, many int) (*Network, []guest) {
	t.Helper()
	n := New(cfg)
	if why := n.Missing(); why != "" {
		require.NotEqual(t, "true", os.Getenv("CI"), why)
		t.Skip(why)
	}
	t.Cleanup(func() {
		require.NoError(t, n.Close())
		for _, look := range []string{"ip -o link", "nft list tables", "ip -6 neigh show nud permanent"} {
			require.NotContains(t, sh(t, look), cfg.Name, look)
		}
		claim, err := filepath.Glob(claims + "/" + cfg.Name + ".*")
		require.NoError(t, err)
		require.Empty(t, claim)
	})
	var list []guest
	for range many {
		a, err := n.Take(Jobs)
		require.NoError(t, err)
		g := guest{t, a, n.sixOf(a), filepath.Join(t.TempDir(), "ns")}
		require.NoError(t, NewNamespace(g.path))
		require.NoError(t, n.ConnectAt(a, g.path))
		t.Cleanup(func() {
			require.NoError(t, DropNamespace(g.path))
			require.NoError(t, n.Disconnect(context.Background(), a))
		})
		list = append(list, g)
	}
	return n, list
}

func sh(t *testing.T, script string) string {
	t.Helper()
	out, err := exec.Command("/bin/sh", "-c", script).CombinedOutput()
	require.NoError(t, err, "%s: %s", script, out)
	return string(out)
}

// run runs a script in the guest's namespace.
func (g guest) run(script string) string {
	g.t.Helper()
	out, err := exec.Command("nsenter", "--net="+g.path, "/bin/sh", "-c", script).CombinedOutput()
	require.NoError(g.t, err, "%s: %s", script, out)
	return string(out)
}

// reaches reports whether a connection to the address is answered.
func (g guest) reaches(at net.Addr) bool {
	g.t.Helper()
	to := at.(*net.TCPAddr)
	script := fmt.Sprintf("import socket; socket.create_connection((%q, %d), 3)", to.IP.String(), to.Port)
	return exec.Command("nsenter", "--net="+g.path, "python3", "-c", script).Run() == nil
}

// listen listens in the machine as a name server for guests does, or as any program.
func listen(t *testing.T, published bool, host string) net.Addr {
	t.Helper()
	how := net.ListenConfig{}
	if published {
		how.Control = egress.Publish
	}
	l, err := how.Listen(t.Context(), "tcp", net.JoinHostPort(host, "0"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr()
}

// TestWhatIsPublished: tasks of jobs reach what the agent publishes, of both families, and nothing else of the machine. Runners do not.
func TestWhatIsPublished(t *testing.T) {
	t.Parallel()
	for _, firewall := range []string{"nft", "iptables"} {
		t.Run(firewall, func(t *testing.T) {
			t.Parallel()
			cfg := bridged(t)
			if cfg.Firewall = firewall; firewall == "iptables" {
				cfg.Subnet6 = netip.Prefix{}
			}
			n, guests := openNetwork(t, cfg, 1)
			a, err := n.Take(Runners)
			require.NoError(t, err)
			runner := guest{t, a, netip.Addr{}, filepath.Join(t.TempDir(), "ns")}
			require.NoError(t, NewNamespace(runner.path))
			require.NoError(t, n.ConnectAt(a, runner.path))
			t.Cleanup(func() {
				require.NoError(t, DropNamespace(runner.path))
				require.NoError(t, n.Disconnect(context.Background(), a))
			})
			hosts := []string{n.Gateway().String()}
			if six := n.sixOf(n.Gateway()); six.IsValid() {
				hosts = append(hosts, six.String())
			}
			for _, host := range hosts {
				open := listen(t, true, host)
				require.True(t, guests[0].reaches(open), "published at %s", open)
				require.False(t, runner.reaches(open), "published, but not to runners: %s", open)
				require.False(t, guests[0].reaches(listen(t, false, host)), "not published at %s", host)
			}
			require.NotContains(t, runner.run("ip -6 addr show dev eth0"), "fd29:", "runners have no address of IPv6")

			theLoopbackIsTheMachines(t, n, guests[0])
		})
	}
}

// theLoopbackIsTheMachines also where, as with Kubernetes, the kernel takes packets for it from elsewhere.
func theLoopbackIsTheMachines(t *testing.T, n *Network, g guest) {
	t.Helper()
	sh(t, "echo 1 >/proc/sys/net/ipv4/conf/"+n.cfg.Name+"/route_localnet")
	how := net.ListenConfig{Control: egress.Publish}
	inner, err := how.ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	require.NoError(t, err)
	defer inner.Close()
	gate := n.Gateway().String()
	g.run(fmt.Sprintf(`echo 1 >/proc/sys/net/ipv4/conf/eth0/route_localnet
		ip route flush table local dev lo
		ip route replace 127.0.0.1 via %s dev eth0 onlink src %s
		python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"guest", ("127.0.0.1", %d))'`,
		gate, g.a, inner.LocalAddr().(*net.UDPAddr).Port))
	require.True(t, g.reaches(listen(t, true, gate)), "what it sent before has arrived")
	_, err = inner.WriteTo([]byte("machine"), inner.LocalAddr())
	require.NoError(t, err)
	text := make([]byte, 100)
	k, _, err := inner.ReadFrom(text)
	require.NoError(t, err)
	require.Equal(t, "machine", string(text[:k]))
}

// TestAddressesOfIPv6: a guest is reached at its own from the machine, and no other guest reaches it.
func TestAddressesOfIPv6(t *testing.T) {
	t.Parallel()
	n, guests := openNetwork(t, bridged(t), 2)
	server := exec.Command("nsenter", "--net="+guests[0].path, "python3", "-uc",
		"import socket\ns = socket.create_server(('::', 80), family=socket.AF_INET6)\nprint('ready')\nwhile True: s.accept()")
	out, err := server.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, server.Start())
	t.Cleanup(func() { _ = server.Process.Kill(); _ = server.Wait() })
	_, err = out.Read(make([]byte, 16))
	require.NoError(t, err)
	at := &net.TCPAddr{IP: guests[0].six.AsSlice(), Port: 80}
	c, err := net.DialTimeout("tcp", at.String(), 10*time.Second)
	require.NoError(t, err)
	require.NoError(t, c.Close())
	require.False(t, guests[1].reaches(at))
	require.Equal(t, &network.Status{
		InterfaceName: "eth0", Address: guests[0].a.String(), AddressIPv6: guests[0].six.String(),
	}, n.Status(guests[0].a))
	require.Contains(t, guests[0].run("ip -6 route"), "default via "+n.sixOf(n.Gateway()).String())
	require.NotContains(t, guests[0].run("ip -6 addr show dev eth0"), "fe80:", "no other address was made up")
}

// forger sends frames as somebody else: arguments are our and the victim's hardware addresses, our address and the victim's two, and the
// machine's. It says that the victim's addresses are ours, that we are a router, and sends datagrams from the victim's addresses.
const forger = `
import socket, struct, sys
own, victim, mine, four, six, gate, gate6, port, bridge = sys.argv[1:]
mac = lambda s: bytes.fromhex(s.replace(":", ""))
v4, v6 = lambda a: socket.inet_pton(socket.AF_INET, a), lambda a: socket.inet_pton(socket.AF_INET6, a)
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(("eth0", 0))
def sum16(b):
    b += b"\0" * (len(b) % 2)
    n = sum(struct.unpack("!%dH" % (len(b) // 2), b))
    while n >> 16: n = (n >> 16) + (n & 0xffff)
    return ~n & 0xffff
def icmp6(src, dst, body):
    pseudo = v6(src) + v6(dst) + struct.pack("!I3xB", len(body), 58)
    body = body[:2] + struct.pack("!H", sum16(pseudo + body)) + body[4:]
    return struct.pack("!IHBB", 6 << 28, len(body), 58, 255) + v6(src) + v6(dst) + body
def udp4(src, dst):
    u = struct.pack("!HHHH", 9, int(port), 8 + 6, 0) + b"forged"
    h = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(u), 1, 0, 64, 17, 0) + v4(src) + v4(dst)
    return h[:10] + struct.pack("!H", sum16(h)) + h[12:] + u
def udp6(src, dst):
    u = struct.pack("!HHHH", 9, int(port), 8 + 6, 0) + b"forged"
    u = u[:6] + struct.pack("!H", sum16(v6(src) + v6(dst) + struct.pack("!I3xB", len(u), 17) + u)) + u[8:]
    return struct.pack("!IHBB", 6 << 28, len(u), 17, 64) + v6(src) + v6(dst) + u
every = b"\xff" * 6
for by in own, victim:
    for to in every, mac(bridge):
        for op in 1, 2:  # "who has the gateway? tell the victim's address at mine", and "the victim's address is mine"
            for as_ in four, mine:  # by the victim's hardware address also with our own, which nobody minds
                s.send(to + mac(by) + b"\x08\x06" + struct.pack("!HHBBH", 1, 0x800, 6, 4, op) + mac(own) + v4(as_) + mac(bridge) + v4(gate))
    link = "fe80::1"
    advert = struct.pack("!BBHBBHII", 134, 0, 0, 64, 0, 1800, 0, 0) \
        + struct.pack("!BBBBIII", 3, 4, 64, 0xc0, 7200, 3600, 0) + v6("fd66::") + b"\x01\x01" + mac(own)
    claim = struct.pack("!BBHI", 136, 0, 0, 0x60000000) + v6(six) + b"\x02\x01" + mac(own)
    for to in b"\x33\x33\x00\x00\x00\x01", mac(bridge):
        s.send(to + mac(by) + b"\x86\xdd" + icmp6(link, "ff02::1", advert))
        s.send(to + mac(by) + b"\x86\xdd" + icmp6(six, "ff02::1", claim))
        s.send(to + mac(by) + b"\x86\xdd" + icmp6(six, gate6, claim))
    s.send(mac(bridge) + mac(by) + b"\x08\x00" + udp4(four, gate))
    s.send(mac(bridge) + mac(by) + b"\x86\xdd" + udp6(six, gate6))
    s.send(b"\x01\x80\xc2\x00\x00\x0e" + mac(by) + b"\x88\xcc\x02\x07\x04" + mac(by))  # to a bridge's own address: no rule sees it
print("sent")
`

// TestAGuestIsNobodyElse: one with all rights over its namespace says that another's addresses are its own, that it is a router, and
// sends from the other's addresses. Neither the bridge nor the machine nor the other guest believes anything.
func TestAGuestIsNobodyElse(t *testing.T) {
	t.Parallel()
	n, guests := openNetwork(t, bridged(t), 2)
	evil, victim := guests[0], guests[1]
	heard := make([]net.PacketConn, 2)
	gates := []string{n.Gateway().String(), n.sixOf(n.Gateway()).String()}
	port := "0"
	for i, gate := range gates {
		how := net.ListenConfig{Control: egress.Publish}
		var err error
		heard[i], err = how.ListenPacket(t.Context(), "udp", net.JoinHostPort(gate, port))
		require.NoError(t, err)
		defer heard[i].Close()
		_, port, _ = net.SplitHostPort(heard[i].LocalAddr().String())
	}
	say := `python3 -c 'import socket, sys
for a in sys.argv[2:]:
    s = socket.socket(socket.AF_INET6 if ":" in a else socket.AF_INET, socket.SOCK_DGRAM)
    s.sendto(sys.argv[1].encode(), (a, ` + port + `))' `
	hears := func(from netip.Addr, what string, at net.PacketConn) {
		t.Helper()
		require.NoError(t, at.SetReadDeadline(time.Now().Add(30*time.Second)))
		text := make([]byte, 100)
		k, who, err := at.ReadFrom(text)
		require.NoError(t, err)
		sender, err := netip.ParseAddrPort(who.String())
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint(from, " ", what), fmt.Sprint(sender.Addr().Unmap(), " ", string(text[:k])))
	}
	victim.run(say + "before " + strings.Join(gates, " ")) // so that the machine knows where it is
	hears(victim.a, "before", heard[0])
	hears(victim.six, "before", heard[1])

	script := filepath.Join(t.TempDir(), "forger.py")
	require.NoError(t, os.WriteFile(script, []byte(forger), 0o600))
	require.Equal(t, "sent\n", evil.run(strings.Join([]string{
		"python3", script, hardware(evil.a).String(), hardware(victim.a).String(), evil.a.String(), victim.a.String(), victim.six.String(),
		gates[0], gates[1], port, hardware(n.Gateway()).String(),
	}, " ")))
	name, at := n.cfg.Name, hardware(victim.a).String()
	ports := sh(t, "bridge fdb show br "+name+" | grep "+at) // before the victim is heard again
	require.Contains(t, ports, Device(victim.a))
	require.NotContains(t, ports, Device(evil.a))
	// What was sent first arrives first: the honest ones would come behind the forged.
	evil.run(say + "mine " + strings.Join(gates, " "))
	hears(evil.a, "mine", heard[0])
	hears(evil.six, "mine", heard[1])
	victim.run(say + "after " + strings.Join(gates, " "))
	hears(victim.a, "after", heard[0])
	hears(victim.six, "after", heard[1])

	require.Contains(t, sh(t, "ip neigh show "+victim.a.String()+" dev "+name), at)
	require.Contains(t, sh(t, "ip neigh show "+victim.six.String()+" dev "+name), at+" PERMANENT")
	for _, routes := range []string{sh(t, "ip -6 route show dev "+name), victim.run("ip -6 route; ip -6 addr")} {
		require.NotContains(t, routes, "fd66:")
		require.NotContains(t, routes, "via fe80:")
	}
}

// TestWhatSomebodyElseRemoved is made again: rules, and the bridge with all that were on it. So is what was changed.
func TestWhatSomebodyElseRemoved(t *testing.T) {
	t.Parallel()
	n, guests := openNetwork(t, bridged(t), 2)
	name := n.cfg.Name
	rules := func() string { return sh(t, "nft -t list table inet "+name+"; nft -t list table bridge "+name) }
	before := rules()
	for _, change := range []string{
		"nft delete table inet " + name, "nft delete table bridge " + name, "nft flush table inet " + name,
		"nft insert rule inet " + name + " input accept", "ip link del " + name,
	} {
		sh(t, change)
		n.Mend()
		require.Equal(t, before, rules(), change)
	}
	for _, host := range []netip.Addr{n.Gateway(), n.sixOf(n.Gateway())} {
		for _, g := range guests {
			require.True(t, g.reaches(listen(t, true, host.String())), "%s is on the new bridge", g.a)
		}
	}
	require.Contains(t, sh(t, "bridge -d link show dev "+Device(guests[0].a)), "learning off")
	require.Contains(t, sh(t, "bridge -d link show dev "+Device(guests[0].a)), "isolated on")
}

// TestAGuestThatSomebodyTookFromTheBridge is put there again, as one that begins.
func TestAGuestThatSomebodyTookFromTheBridge(t *testing.T) {
	t.Parallel()
	n, guests := openNetwork(t, bridged(t), 2)
	sh(t, "ip link set "+Device(guests[0].a)+" nomaster")
	n.Mend()
	for _, g := range guests {
		require.True(t, g.reaches(listen(t, true, n.Gateway().String())), "%s", g.a)
		port := sh(t, "bridge -d link show dev "+Device(g.a))
		require.Contains(t, port, "learning off")
		require.Contains(t, port, "isolated on")
	}
}

// TestAGuestComesBackToTheBridgeSecured: while its port has what a new one has, nothing passes it.
func TestAGuestComesBackToTheBridgeSecured(t *testing.T) {
	t.Parallel()
	n, guests := openNetwork(t, bridged(t), 1)
	updates, done := make(chan netlink.LinkUpdate, 1<<12), make(chan struct{})
	require.NoError(t, netlink.LinkSubscribe(updates, done))
	defer close(done)
	sh(t, "ip link del "+n.cfg.Name)
	n.Mend()
	for u := range updates {
		if u.Attrs().Name == Device(guests[0].a) && u.Attrs().MasterIndex == indexOf(n.cfg.Name) {
			require.Zero(t, u.IfInfomsg.Flags&unix.IFF_UP, "the first that is heard of it on the new bridge")
			break
		}
	}
	require.True(t, guests[0].reaches(listen(t, true, n.Gateway().String())))
}

// TestAnAgentThatEndsWhileAnotherBegins: what it had said of the bridge binds nobody any more.
func TestAnAgentThatEndsWhileAnotherBegins(t *testing.T) {
	t.Parallel()
	cfg := bridged(t)
	n, _ := openNetwork(t, cfg, 0)
	f, err := n.openClaim()
	require.NoError(t, err)
	require.NoError(t, flock.Exclusive(f)) // it is removing the bridge
	_, err = f.WriteString("{}")
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- n.Up() }()
	info, err := f.Stat()
	require.NoError(t, err)
	waits := fmt.Sprintf(`-> FLOCK .*:%d `, info.Sys().(*syscall.Stat_t).Ino)
	waiting := func() bool { return exec.Command("grep", "-q", "--", waits, "/proc/locks").Run() == nil }
	require.Eventually(t, waiting, time.Minute, time.Millisecond)
	require.NoError(t, os.Remove(f.Name()))
	require.NoError(t, flock.Close(f))
	require.NoError(t, <-ended)
}

// TestTwoAgentsOfOneMachine share a bridge if they say the same of it, and then neither takes it from the other. Else the second is told.
func TestTwoAgentsOfOneMachine(t *testing.T) {
	t.Parallel()
	cfg := bridged(t)
	first, guests := openNetwork(t, cfg, 1)
	second := New(cfg)
	open := listen(t, true, first.Gateway().String())
	require.NoError(t, second.Up())
	require.False(t, first.fence.Changed(), "the rules are the same")
	require.True(t, guests[0].reaches(open))
	a, err := second.Take(Jobs)
	require.NoError(t, err)
	require.NotEqual(t, guests[0].a, a, "addresses are of one bridge")
	require.NoError(t, second.Disconnect(t.Context(), a))
	require.NoError(t, second.Close())
	require.True(t, guests[0].reaches(open), "it is still there")

	other := cfg
	other.Egress.AllowJobs = nil
	third := New(other)
	err = third.Up()
	require.Equal(t, drover.Conflict, drover.CodeOf(err), err)
	require.ErrorContains(t, err, "give this one its own client.bridge_network_name and client.bridge_network_subnet")
	require.NoError(t, third.Close())
	require.False(t, first.fence.Changed())
}

// TestABridgeThatNobodyIsOnStaysForAnotherAgent: the one that ended first took it away from the other, which knew its number only.
func TestABridgeThatNobodyIsOnStaysForAnotherAgent(t *testing.T) {
	t.Parallel()
	cfg := bridged(t)
	first, _ := openNetwork(t, cfg, 0)
	second := New(cfg)
	require.NoError(t, first.Up())
	require.NoError(t, second.Up())
	require.NoError(t, second.Close())
	require.NotZero(t, indexOf(cfg.Name))
}

// TestHowFarAddressesOfIPv6AreBehind those of IPv4.
func TestHowFarAddressesOfIPv6AreBehind(t *testing.T) {
	t.Parallel()
	n := New(Config{Subnet: netip.MustParsePrefix("10.1.2.0/24"), Subnet6: netip.MustParsePrefix("fd00::/64")})
	require.Equal(t, "fd00::1", n.sixOf(n.Gateway()).String())
	require.Equal(t, "fd00::7f", n.sixOf(netip.MustParseAddr("10.1.2.127")).String())
	require.False(t, n.sixOf(netip.MustParseAddr("10.1.2.128")).IsValid(), "a runner's")
	require.False(t, New(Config{}).sixOf(netip.MustParseAddr("172.27.64.2")).IsValid())
	wide := New(Config{Subnet: netip.MustParsePrefix("10.0.0.0/8"), Subnet6: netip.MustParsePrefix("fd00::/104")})
	require.Len(t, wide.guests(), 2*(1<<windowBits)-2, "rules know each guest: there are no more than a bridge has ports")
	a, err := wide.Take(Runners)
	require.NoError(t, err)
	require.Equal(t, "10.128.0.1", a.String())
}
