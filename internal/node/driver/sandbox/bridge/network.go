package bridge

import (
	"fmt"
	"log/slog"
	"net/netip"
	"sync"

	"drover"
	"drover/internal/clock"
)

// Config of a Network.
type Config struct {
	Name   string       // of the bridge and of the rules; default drover0
	Subnet netip.Prefix // IPv4, default 172.27.64.0/20; its first address is the bridge's
	// Firewall is "nft" or "iptables"; "" = the first of them that works here.
	Firewall string
	Clock    clock.Clock
	Log      *slog.Logger
}

// Network is the bridge and what is connected to it. Its methods may be called at once. The kernel keeps the bridge,
// the pairs and the rules over an agent restart.
type Network struct {
	cfg  Config
	kind func() (string, error) // of firewall, found once

	mu   sync.Mutex
	up   int // index of the bridge, 0 = not looked at yet; guarded by mu
	used map[netip.Addr]bool
	last netip.Addr
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
	n := &Network{cfg: cfg, used: map[netip.Addr]bool{}}
	n.kind = sync.OnceValues(func() (string, error) { return findFirewall(cfg.Firewall) })
	n.last = n.Gateway()
	return n
}

// Gateway is the machine's address in the network.
func (n *Network) Gateway() netip.Addr { return n.cfg.Subnet.Addr().Next() }

// Take reserves an address; one that was given back is used again as late as possible, and one that another agent of this
// machine has, on the same bridge, not at all. Errors: Exhausted.
func (n *Network) Take() (netip.Addr, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for a := n.last.Next(); a != n.last; a = a.Next() {
		if !n.cfg.Subnet.Contains(a) || !n.cfg.Subnet.Contains(a.Next()) { // the broadcast address
			a = n.Gateway()
			if a == n.last {
				break
			}
			continue
		}
		if !n.used[a] && !there(a) {
			n.used[a], n.last = true, a
			return a, nil
		}
	}
	return netip.Addr{}, drover.Errorf(drover.Exhausted, "all addresses of %s are in use", n.cfg.Subnet)
}

// Hold marks the address of a sandbox that an earlier agent started.
func (n *Network) Hold(a netip.Addr) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.used[a] = true
}

// Device names the machine's end of the pair with this address inside.
func Device(a netip.Addr) string {
	b := a.As4()
	return fmt.Sprintf("dv%x", b[:])
}

func (n *Network) release(a netip.Addr) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.used, a)
}
