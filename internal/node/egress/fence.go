package egress

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"

	"github.com/drover-project/drover"
)

// Config of a Fence.
type Config struct {
	Name   string       // of the bridge's device, and of its rules
	Subnet netip.Prefix // of the guests' addresses, IPv4
	Jobs   netip.Prefix // the part of it that tasks of jobs have; invalid: none
	// Outward translates addresses, and lets packets by a FORWARD chain that drops: for a bridge of ours. Docker does both
	// for its own.
	Outward  bool
	Firewall string // "nft" or "iptables"; "" = the first of them that works here
	Policy   Policy
	Log      *slog.Logger
}

// Fence is the rules of one bridge. The kernel keeps them over an agent restart.
type Fence struct {
	cfg  Config
	find func() (found, error) // of the firewall, once
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
	if _, err := f.find(); err != nil {
		return err.Error()
	}
	return ""
}

// Weaker says what the rules cannot do on this machine, "" if they can do all.
func (f *Fence) Weaker() string {
	got, err := f.find()
	if err != nil || (got.count && got.rate) {
		return ""
	}
	return "the kernel's part of " + got.kind + " does not bound guests' connections and packets " +
		"(nft_connlimit, nft_limit; xt_connlimit, xt_hashlimit)"
}

// firewall writes the rules.
type firewall interface {
	set(text rules) error
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
}

// Set makes the rules, in the place of those that are there, in one step. Errors: Unavailable.
func (f *Fence) Set() error {
	w, has, err := f.firewall()
	if err != nil {
		return err
	}
	return w.set(rules{has, f.cfg.Policy.reach(ip4)})
}

// Remove takes them away.
func (f *Fence) Remove() error {
	w, _, err := f.firewall()
	if err != nil {
		return err
	}
	return w.remove()
}

// noIPv6 switches it off on the bridge: no guest has an address of it, and the rules know none.
func (c Config) noIPv6() error {
	err := os.WriteFile("/proc/sys/net/ipv6/conf/"+c.Name+"/disable_ipv6", []byte("1"), 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
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
