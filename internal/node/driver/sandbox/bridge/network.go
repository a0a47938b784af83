package bridge

import (
	"encoding/binary"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/egress"
	"github.com/drover-project/drover/network"
)

// Config of a Network.
type Config struct {
	Name   string       // of the bridge and of the rules; default drover0
	Subnet netip.Prefix // IPv4, default 172.27.64.0/20; its first address is the bridge's
	// Subnet6 is of IPv6, at least as large; tasks of jobs have an address of it, too. Invalid: nobody has one.
	Subnet6 netip.Prefix
	// DNS reports that a name server of this process answers tasks of jobs at Gateway.
	DNS bool
	// Firewall is "nft" or "iptables"; "" = the first of them that works here.
	Firewall string
	Egress   egress.Policy // what those that are connected may reach, and how much of it
	Clock    clock.Clock
	Log      *slog.Logger
}

// Kind of what is connected. Each kind has a half of the subnet, so that the rules know it by its address.
type Kind bool

// The kinds.
const (
	Jobs    Kind = false // tasks of jobs: the lower half
	Runners Kind = true  // warm runners, whose code is unknown: the upper one
)

// Network is the bridge and what is connected to it. Its methods may be called at once. The kernel keeps the bridge,
// the pairs and the rules over an agent restart.
type Network struct {
	cfg   Config
	fence *egress.Fence

	mu        sync.Mutex
	up        int                 // index of the bridge, 0 = not looked at yet; guarded by mu
	claim     *os.File            // locked while we use the bridge; guarded by mu
	hardware  net.HardwareAddr    // of the bridge; guarded by mu
	resolvers time.Time           // when those were changed that the rules know; guarded by mu
	used      map[netip.Addr]bool // guarded by mu
	six       map[netip.Addr]bool // those whose guests have an address of IPv6, too; guarded by mu
	last      map[Kind]netip.Addr // guarded by mu
}

// New returns the network. No I/O: the bridge is made with the first connection.
func New(cfg Config) *Network {
	if cfg.Name == "" {
		cfg.Name = "drover0"
	}
	if !cfg.Subnet.IsValid() {
		cfg.Subnet = netip.MustParsePrefix("172.27.64.0/20")
	}
	cfg.Subnet = cfg.Subnet.Masked()
	n := &Network{cfg: cfg, used: map[netip.Addr]bool{}, six: map[netip.Addr]bool{}, last: map[Kind]netip.Addr{}}
	for _, k := range []Kind{Jobs, Runners} {
		n.last[k] = n.half(k).Addr()
	}
	rules := egress.Config{
		Name: cfg.Name, Subnet: cfg.Subnet, Jobs: n.half(Jobs), Guests: n.guests, Outward: true, Firewall: cfg.Firewall, Policy: cfg.Egress,
		Log: cfg.Log,
	}
	if cfg.Subnet6.IsValid() {
		n.cfg.Subnet6 = cfg.Subnet6.Masked()
		rules.Subnet6, rules.Jobs6 = n.cfg.Subnet6, netip.PrefixFrom(n.cfg.Subnet6.Addr(), n.half(Jobs).Bits()+128-32)
	}
	n.fence = egress.New(rules)
	return n
}

// half is the part of the subnet that a kind has.
func (n *Network) half(k Kind) netip.Prefix {
	half := netip.PrefixFrom(n.cfg.Subnet.Addr(), n.cfg.Subnet.Bits()+1)
	if k == Jobs {
		return half
	}
	b := half.Addr().As4()
	b[n.cfg.Subnet.Bits()/8] |= 0x80 >> (n.cfg.Subnet.Bits() % 8)
	return netip.PrefixFrom(netip.AddrFrom4(b), half.Bits())
}

// Missing says what the machine lacks for a bridge, "" if nothing.
func (n *Network) Missing() string { return n.fence.Missing() }

// Weaker says what the bridge's rules cannot do here, "" if they can do all.
func (n *Network) Weaker() string { return n.fence.Weaker() }

// Publishes reports whether tasks of jobs reach what this process listens on for them.
func (n *Network) Publishes() bool { return n.fence.Publishes() }

// Fence has the rules, also for namespaces of guests that are connected elsewhere.
func (n *Network) Fence() *egress.Fence { return n.fence }

// Gateway is the machine's address in the network.
func (n *Network) Gateway() netip.Addr { return n.cfg.Subnet.Addr().Next() }

// Take reserves an address. One that was given back is used again as late as possible. One that another agent of this machine has on the
// same bridge is passed over. Errors: Exhausted.
func (n *Network) Take(k Kind) (netip.Addr, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	window, last := n.window(k), n.last[k]
	for a := last; ; {
		if a = a.Next(); !window.Contains(a) {
			a = window.Addr()
		}
		if n.usable(a) && !n.used[a] && !there(a) {
			n.used[a], n.six[a], n.last[k] = true, n.sixOf(a).IsValid(), a
			return a, nil
		}
		if a == last {
			return netip.Addr{}, drover.Errorf(drover.Exhausted, "all addresses of %s are in use", window)
		}
	}
}

// window is the part of a kind's half whose addresses are given: more than a bridge of Linux can have ports.
func (n *Network) window(k Kind) netip.Prefix {
	half := n.half(k)
	return netip.PrefixFrom(half.Addr(), max(half.Bits(), 32-windowBits))
}

const windowBits = 11

// usable reports whether a guest can have the address: the network's, the bridge's and that for all have other uses.
func (n *Network) usable(a netip.Addr) bool {
	return a != n.cfg.Subnet.Addr() && a != n.Gateway() && n.cfg.Subnet.Contains(a.Next())
}

// guests are all that Take may give.
func (n *Network) guests() (list []egress.Guest) {
	for _, k := range []Kind{Jobs, Runners} {
		window := n.window(k)
		for a := window.Addr(); window.Contains(a); a = a.Next() {
			if n.usable(a) {
				list = append(list, egress.Guest{Device: Device(a), Address: a, IPv6: n.sixOf(a)})
			}
		}
	}
	return list
}

// sixOf is the address of IPv6 that belongs to one of IPv4: as far behind the beginning of its network. Invalid: none does.
func (n *Network) sixOf(a netip.Addr) netip.Addr {
	if !n.cfg.Subnet6.IsValid() || a != n.Gateway() && !n.half(Jobs).Contains(a) {
		return netip.Addr{}
	}
	four, begin, six := a.As4(), n.cfg.Subnet.Addr().As4(), n.cfg.Subnet6.Addr().As16()
	behind := binary.BigEndian.Uint32(four[:]) - binary.BigEndian.Uint32(begin[:])
	binary.BigEndian.PutUint32(six[12:], binary.BigEndian.Uint32(six[12:])|behind)
	return netip.AddrFrom16(six)
}

// Resolver is where tasks of jobs ask for names; invalid: where the machine does.
func (n *Network) Resolver() netip.Addr {
	if n.cfg.DNS {
		return n.Gateway()
	}
	return netip.Addr{}
}

// Guests is the network of tasks of jobs.
func (n *Network) Guests() netip.Prefix { return n.half(Jobs) }

// Status is what an allocation shows of its connection.
func (n *Network) Status(a netip.Addr) *network.Status {
	s := &network.Status{InterfaceName: Inside, Address: a.String()}
	if r := n.Resolver(); r.IsValid() && n.half(Jobs).Contains(a) {
		s.DNS = &network.DNSConfig{Servers: []string{r.String()}}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.six[a] {
		s.AddressIPv6 = n.sixOf(a).String()
	}
	return s
}

// HasIPv6 reports whether who has the address has one of IPv6, too, or will when it is connected.
func (n *Network) HasIPv6(a netip.Addr) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.six[a]
}

// Hold marks the address of a sandbox that an earlier agent started, with or without one of IPv6. Its rules are ours from now on.
func (n *Network) Hold(a netip.Addr, six bool) {
	n.mu.Lock()
	n.used[a] = true
	if six && n.sixOf(a).IsValid() {
		n.six[a] = true
	}
	n.mu.Unlock()
	if n.Missing() != "" {
		return
	}
	index, err := n.ensure()
	if err == nil {
		err = n.rejoin(a, index)
	}
	if err != nil {
		n.cfg.Log.Error("renewing the rules of the bridge", "bridge", n.cfg.Name, "error", err)
	}
}

// Device names the machine's end of the pair with this address inside.
func Device(a netip.Addr) string {
	b := a.As4()
	return fmt.Sprintf("dv%x", b[:])
}

// release gives an address back. Its pair must be gone, or there keeps Take from it.
func (n *Network) release(a netip.Addr) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.used, a)
	delete(n.six, a)
}
