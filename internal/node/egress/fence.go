package egress

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover"
)

// Config of a Fence.
type Config struct {
	Name   string       // of the bridge's device, and of its rules
	Subnet netip.Prefix // of the guests' addresses, IPv4; its first address is the machine's
	Jobs   netip.Prefix // the part of it that tasks of jobs have; invalid: none
	// Subnet6 and Jobs6 are the same of IPv6, which only tasks of jobs have; invalid: nobody has.
	Subnet6, Jobs6 netip.Prefix
	// Guests are all ports that the bridge may have, with the addresses of those behind them; nil: any guest may send as any other.
	Guests func() []Guest
	// Outward translates addresses, and lets packets by a FORWARD chain that drops: for a bridge of ours. Docker does both
	// for its own.
	Outward  bool
	Firewall string // "nft" or "iptables"; "" = the first of them that works here
	Policy   Policy
	Log      *slog.Logger
}

// Guest is one that may be on a bridge.
type Guest struct {
	Device        string     // the machine's end
	Address, IPv6 netip.Addr // IPv6 is invalid for one that has none
}

// Mark is what sockets of this process have that jobs' tasks on bridges may reach: see Publish. What they send has it, too, so it has no
// bit by which plugins of CNI, Kubernetes or others know packets that they translate or route.
const Mark = 0x1070

// Publish is for net.ListenConfig: tasks of jobs on a bridge reach the socket, as far as the policy lets them reach its address. Nobody
// else gets to know of it, and it is closed with the socket.
func Publish(_, _ string, c syscall.RawConn) error {
	var err error
	return errors.Join(c.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_MARK, Mark) }), err)
}

// Fence is the rules of one bridge. The kernel keeps them over an agent restart.
type Fence struct {
	cfg  Config
	find func() (found, error) // of the firewall, once

	mu   sync.Mutex
	kept string // what the kernel said that the rules are, right after they were set; guarded by mu
}

// found is a firewall of this machine, and what its kernel's part can do.
type found struct {
	kind string
	features
}

// features that a kernel may lack.
type features struct {
	count  bool // connections of an address
	rate   bool // what an address sends
	reject bool // answers, where else programs wait
	socket bool // who listens: without it nothing is published
	ports  bool // which port of the bridge a packet came by: without it guests may send as others
}

// New returns the fence. No I/O.
func New(cfg Config) *Fence {
	f := &Fence{cfg: cfg}
	f.find = sync.OnceValues(func() (found, error) { return findFirewall(cfg.Firewall) })
	return f
}

// Missing says what the machine lacks for it, "" if nothing.
func (f *Fence) Missing() string {
	if os.Geteuid() != 0 {
		return "the agent is not root"
	}
	got, err := f.find()
	if err != nil {
		return err.Error()
	}
	if f.cfg.Subnet6.IsValid() && got.kind != firewallNFT {
		return "bridge_network_subnet_ipv6 needs nft (apt-get install nftables)"
	}
	return ""
}

// Weaker says what the rules cannot do on this machine, "" if they can do all.
func (f *Fence) Weaker() string {
	got, err := f.find()
	if err != nil {
		return ""
	}
	var lacks []string
	for what, has := range map[string]bool{
		"does not bound guests' connections and packets (nft_connlimit, nft_limit; xt_connlimit, xt_hashlimit)": got.count && got.rate,
		"does not let groups reach each other's ports (nft_socket; xt_socket)":                                  got.socket,
		"does not keep guests from sending as others (nft's family bridge)":                                     got.ports,
	} {
		if !has {
			lacks = append(lacks, what)
		}
	}
	if len(lacks) == 0 {
		return ""
	}
	slices.Sort(lacks)
	return "the kernel's part of " + got.kind + " " + strings.Join(lacks, ", and ")
}

// Publishes reports whether the firewall here can open what has the Mark. Without it guests reach nothing of the machine.
func (f *Fence) Publishes() bool {
	got, err := f.find()
	return err == nil && got.socket
}

// firewall writes the rules.
type firewall interface {
	set(text rules) error
	list() (string, error) // as the kernel has them
	remove() error
}

// firewall returns the writer for the firewall that was found. Errors: Unavailable.
func (f *Fence) firewall() (firewall, features, error) {
	got, err := f.find()
	switch {
	case err != nil:
		return nil, features{}, drover.Errorf(drover.Unavailable, "%w", err)
	case got.kind == firewallNFT:
		return nft{f.cfg}, got.features, nil
	default:
		return iptables{f.cfg}, got.features, nil
	}
}

// rules are what a firewall is asked for.
type rules struct {
	features
	reach
	six reach // of IPv6
}

func (p Policy) rules(has features) rules { return rules{has, p.reach(ip4), p.reach(ip6)} }

// Set makes the rules, in the place of those that are there, in one step. Errors: Unavailable.
func (f *Fence) Set() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	w, has, err := f.firewall()
	if err != nil {
		return err
	}
	if err := f.cfg.families(); err != nil {
		return err
	}
	if err := w.set(f.cfg.Policy.rules(has)); err != nil {
		return err
	}
	f.kept, err = w.list()
	return err
}

// Changed reports whether the rules are not what Set made them: somebody else has changed or removed them.
func (f *Fence) Changed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	w, _, err := f.firewall()
	if err != nil {
		return false // nothing can be set again
	}
	now, err := w.list()
	return err != nil || now != f.kept
}

// Remove takes them away.
func (f *Fence) Remove() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	w, _, err := f.firewall()
	if err != nil {
		return err
	}
	return w.remove()
}

// families switches IPv6 off on the bridge where no guest has an address of it. Where some have, the bridge believes no guest that says it
// is a router.
func (c Config) families() error {
	knobs := map[string]string{"disable_ipv6": "1"}
	if c.Subnet6.IsValid() {
		knobs = map[string]string{"disable_ipv6": "0", "accept_ra": "0", "autoconf": "0", "accept_redirects": "0"}
	}
	for name, value := range knobs {
		err := os.WriteFile("/proc/sys/net/ipv6/conf/"+c.Name+"/"+name, []byte(value), 0)
		if errors.Is(err, os.ErrNotExist) && !c.Subnet6.IsValid() {
			return nil
		}
		if err != nil {
			return fmt.Errorf("setting up IPv6 on the bridge: %w", err)
		}
	}
	return nil
}

// run runs a program with the text as its input. Its output is part of the error: it names the rule that was refused.
func run(stdin, name string, args ...string) error {
	c := exec.Command(name, args...)
	c.Stdin = strings.NewReader(stdin)
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, strings.TrimSpace(string(out)))
	}
	return nil
}

// text collects lines of rules.
type text struct{ strings.Builder }

func (t *text) line(format string, args ...any) { fmt.Fprintf(t, format+"\n", args...) }
