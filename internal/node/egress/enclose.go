package egress

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover"
)

// insideTable is the name of the rules in a namespace.
const insideTable = "drover"

// Enclose sets the rules of jobs in a network namespace of guests whose packets come by no bridge of ours, in the place of those that are
// there, in one step. They go with the namespace. more are name servers that its guests are told of. What is the machine's is told by its
// addresses, so that Enclose must be called again when those change: see Surroundings. Only who has CAP_NET_ADMIN over the namespace can
// take the rules away, and with CAP_NET_RAW packets are sent that pass by them. Errors: Unavailable.
func (f *Fence) Enclose(namespace string, more []netip.Addr) error {
	if why := f.CannotEnclose(); why != "" {
		return drover.Errorf(drover.Unavailable, "rules of egress cannot be set: %s", why)
	}
	_, has, err := f.firewall()
	if err != nil {
		return err
	}
	machine, err := machineAddresses()
	if err != nil {
		return err
	}
	table := nft{f.cfg}.inside(has, machine, more)
	err = OnThread(func() error {
		ns, err := os.Open(namespace)
		if err != nil {
			return err
		}
		defer ns.Close()
		if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("entering the network namespace: %w", err)
		}
		return run(table, "nft", "-f", "-")
	})
	if err != nil {
		return drover.Errorf(drover.Unavailable, "setting the rules of egress: %w", err)
	}
	return nil
}

// CannotEnclose says what the machine lacks for Enclose, "" if nothing.
func (f *Fence) CannotEnclose() string {
	if why := f.Missing(); why != "" {
		return why
	}
	if got, err := f.find(); err != nil || got.kind != firewallNFT {
		return "networks other than the bridge need nft (apt-get install nftables)"
	}
	return ""
}

// Surroundings changes whenever Enclose must be called again: with the machine's addresses and name servers.
func (f *Fence) Surroundings() string {
	machine, err := machineAddresses()
	return fmt.Sprint(machine, err, f.cfg.Policy.resolvers())
}

// machineAddresses are what the machine listens on, but for loopback and link-local ones, which are special.
func machineAddresses() ([]netip.Prefix, error) {
	found, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("reading the machine's addresses: %w", err)
	}
	var list []netip.Addr
	for _, a := range found {
		if n, ok := a.(*net.IPNet); ok {
			if ip, ok := netip.AddrFromSlice(n.IP); ok && !ip.IsLoopback() && !ip.IsLinkLocalUnicast() {
				list = append(list, ip)
			}
		}
	}
	return distinct(each(list)), nil
}

// inside is the table for a namespace. It bounds the namespace as a whole, as the bridge's bounds each guest. What tasks say to each other
// on the loopback is no business of it, and not in the machine's table of connections.
func (f nft) inside(has features, machine []netip.Prefix, more []netip.Addr) string {
	var t text
	t.line("add table inet %s\ndelete table inet %s\ntable inet %s {", insideTable, insideTable, insideTable)
	t.line("	chain leaving {")
	t.line("		type filter hook output priority -300; policy accept;")
	t.line("		oifname \"lo\" notrack accept")
	if n := f.Policy.PacketRate; has.rate && n > 0 {
		t.line("		limit rate over %d/second burst %d packets drop", n, n)
	}
	t.line("	}\n	chain opening {")
	if n := f.Policy.ConnectionRate; has.rate && n > 0 {
		t.line("		ct state new limit rate over %d/second burst %d packets drop", n, max(n, f.Policy.Connections))
	}
	if n := f.Policy.Connections; has.count && n > 0 {
		t.line("		ct state new ct count over %d drop", n)
	}
	t.line("		accept\n	}")
	t.line("	chain outward {")
	t.line("		icmpv6 type { nd-router-solicit, nd-neighbor-solicit, nd-neighbor-advert, mld-listener-report, mld-listener-done, " +
		"mld2-listener-report } accept") // without them there is no IPv6
	t.line("		ct state established,related accept")
	t.line("		ct state invalid drop")
	for _, family := range []family{ip4, ip6} {
		r := f.Policy.reach(family)
		r.allow, r.exact = nil, nil // of runners, which are in no such namespace
		r.resolvers, r.machine = distinct(append(r.resolvers, family.of(each(more))...)), family.of(machine)
		nftReach(&t, family, has, r, netip.Prefix{})
	}
	t.line("		goto opening\n	}")
	t.line("	chain output {")
	t.line("		type filter hook output priority -10; policy accept;")
	t.line("		oifname != \"lo\" goto outward\n	}")
	t.line("	chain forward {")
	t.line("		type filter hook forward priority -10; policy accept;")
	t.line("		goto outward\n	}\n}")
	return t.String()
}

// OnThread calls f on a thread of its own, which ends with it: f may leave it in another namespace.
func OnThread(f func() error) error {
	result := make(chan error, 1)
	go func() { // ends with f, and its thread with it
		runtime.LockOSThread()
		if unix.Gettid() == os.Getpid() { // the first thread cannot end, and where it is /proc/self and /proc/net are
			result <- OnThread(f)
			runtime.UnlockOSThread()
			return
		}
		result <- f()
	}()
	return <-result
}
