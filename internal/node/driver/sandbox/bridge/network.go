package bridge

import (
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/egress"
)

// Config of a Network.
type Config struct {
	Name   string       // of the bridge and of the rules; default drover0
	Subnet netip.Prefix // IPv4, default 172.27.64.0/20; its first address is the bridge's
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
	resolvers time.Time           // when those were changed that the rules know; guarded by mu
	used      map[netip.Addr]bool // guarded by mu
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
	n := &Network{cfg: cfg, used: map[netip.Addr]bool{}, last: map[Kind]netip.Addr{}}
	for _, k := range []Kind{Jobs, Runners} {
		n.last[k] = n.half(k).Addr()
	}
	n.fence = egress.New(egress.Config{
		Name: cfg.Name, Subnet: cfg.Subnet, Jobs: n.half(Jobs), Outward: true, Firewall: cfg.Firewall, Policy: cfg.Egress, Log: cfg.Log,
	})
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

// Fence has the rules, also for namespaces of guests that are connected elsewhere.
func (n *Network) Fence() *egress.Fence { return n.fence }

// Gateway is the machine's address in the network.
func (n *Network) Gateway() netip.Addr { return n.cfg.Subnet.Addr().Next() }

// Take reserves an address. One that was given back is used again as late as possible. One that another agent of this machine has on the
// same bridge is passed over. Errors: Exhausted.
func (n *Network) Take(k Kind) (netip.Addr, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	half, last := n.half(k), n.last[k]
	for a := last; ; {
		if a = a.Next(); !half.Contains(a) {
			a = half.Addr()
		}
		usable := a != n.cfg.Subnet.Addr() && a != n.Gateway() &&
			n.cfg.Subnet.Contains(a.Next()) // neither the network's nor the broadcast address
		if usable && !n.used[a] && !there(a) {
			n.used[a], n.last[k] = true, a
			return a, nil
		}
		if a == last {
			return netip.Addr{}, drover.Errorf(drover.Exhausted, "all addresses of %s are in use", half)
		}
	}
}

// Hold marks the address of a sandbox that an earlier agent started. Its rules are ours from now on.
func (n *Network) Hold(a netip.Addr) {
	n.mu.Lock()
	n.used[a] = true
	n.mu.Unlock()
	if n.Missing() != "" {
		return
	}
	if _, err := n.ensure(); err != nil {
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
}
