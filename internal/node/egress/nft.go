package egress

import (
	"fmt"
	"net/netip"
	"os/exec"
	"strings"
)

// nft keeps the rules in a table of their own.
type nft struct{ Config }

// maxGuests bounds how many addresses are counted: more than a bridge has.
const maxGuests = 1 << 16

// set replaces our table in one step.
func (f nft) set(r rules) error {
	if err := f.noIPv6(); err != nil {
		return err
	}
	if err := run(f.table(r), "nft", "-f", "-"); err != nil {
		return err
	}
	if f.Outward {
		f.passDocker("-I")
	}
	return nil
}

// table is the text. What floods is dropped before connections are looked up; a connection that a rule drops never gets
// into the machine's table of them.
func (f nft) table(r rules) string {
	var t text
	t.line("add table inet %s\ndelete table inet %s\ntable inet %s {", f.Name, f.Name, f.Name)
	f.arriving(&t, r)
	t.line("	chain input {")
	t.line("		type filter hook input priority -10; policy accept;")
	t.line("		iifname %q ct state established,related accept", f.Name)
	if len(r.resolvers) > 0 {
		t.line("		iifname %q meta l4proto { tcp, udp } th dport 53 ip daddr %s goto opening", f.Name, nftSet(r.resolvers))
	}
	t.line("		iifname %q ip protocol icmp goto opening", f.Name)
	t.line("		iifname %q drop\n	}", f.Name)
	t.line("	chain forward {")
	t.line("		type filter hook forward priority -10; policy accept;")
	t.line("		iifname %q oifname %q drop", f.Name, f.Name)
	t.line("		iifname %q goto outward", f.Name)
	t.line("		oifname %q ct state established,related accept", f.Name)
	t.line("		oifname %q drop\n	}", f.Name)
	f.outward(&t, r)
	if f.Outward {
		t.line("	chain postrouting {")
		t.line("		type nat hook postrouting priority 100; policy accept;")
		t.line("		ip saddr %s oifname != %q masquerade\n	}", f.Subnet, f.Name)
	}
	t.line("}")
	return t.String()
}

// arriving writes the chain before connection tracking: it drops IPv6, forged senders and floods where that is cheapest.
func (f nft) arriving(t *text, r rules) {
	if r.rate && f.Policy.PacketRate > 0 {
		t.line("	set packets { type ipv4_addr; size %d; flags dynamic,timeout; timeout 1m; }", maxGuests)
	}
	t.line("	chain arriving {")
	t.line("		type filter hook prerouting priority -300; policy accept;")
	t.line("		iifname %q meta nfproto ipv6 drop", f.Name)
	t.line("		iifname %q ip saddr != %s drop", f.Name, f.Subnet)
	if n := f.Policy.PacketRate; r.rate && n > 0 {
		t.line("		iifname %q update @packets { ip saddr limit rate over %d/second burst %d packets } drop", f.Name, n, n)
	}
	t.line("	}")
}

// outward answers the packets that leave, and opening counts the connections that they begin.
func (f nft) outward(t *text, r rules) {
	if r.rate && f.Policy.ConnectionRate > 0 {
		t.line("	set attempts { type ipv4_addr; size %d; flags dynamic,timeout; timeout 1m; }", maxGuests)
	}
	if r.count && f.Policy.Connections > 0 {
		t.line("	set connections { type ipv4_addr; size %d; flags dynamic; }", maxGuests)
	}
	t.line("	chain opening {")
	if n := f.Policy.ConnectionRate; r.rate && n > 0 {
		t.line("		ct state new update @attempts { ip saddr limit rate over %d/second burst %d packets } drop", n, max(n, f.Policy.Connections))
	}
	if n := f.Policy.Connections; r.count && n > 0 {
		t.line("		ct state new add @connections { ip saddr ct count over %d } drop", n)
	}
	t.line("		accept\n	}")
	t.line("	chain outward {")
	t.line("		ct state established,related accept")
	t.line("		ct state invalid drop")
	nftReach(t, ip4, r, f.Jobs)
	t.line("		goto opening\n	}")
}

// nftReach writes what guests may reach of one family; jobs are the addresses of jobs' tasks, invalid: there are no others.
func nftReach(t *text, f family, r rules, jobs netip.Prefix) {
	const opening = "goto opening"
	ofRunners, ofJobs := "", ""
	if jobs.IsValid() {
		ofRunners, ofJobs = fmt.Sprintf("%s saddr != %s ", f, jobs), fmt.Sprintf("%s saddr %s ", f, jobs)
	}
	verdict := "drop"
	if r.reject {
		verdict = map[family]string{ip4: "reject with icmp type admin-prohibited", ip6: "reject with icmpv6 type admin-prohibited"}[f]
	}
	to := func(source string, list []netip.Prefix, verdict string) {
		if len(list) > 0 {
			t.line("		%s%s daddr %s %s", source, f, nftSet(list), verdict)
		}
	}
	to("meta l4proto { tcp, udp } th dport 53 ", r.resolvers, opening)
	to("meta l4proto { icmp, ipv6-icmp } ", r.machine, opening)
	to("", r.machine, verdict)
	to(ofJobs, r.exactJobs, opening)
	to(ofRunners, r.exact, opening)
	to("", r.metadata, verdict)
	to(ofJobs, r.allowJobs, opening)
	to(ofRunners, r.allow, opening)
	to("", r.special, verdict)
}

// nftSet writes networks as a set in nft's syntax. The list must not be empty, which nft refuses.
func nftSet(list []netip.Prefix) string {
	texts := make([]string, len(list))
	for i, p := range list {
		texts[i] = p.String()
	}
	return "{ " + strings.Join(texts, ", ") + " }"
}

// passDocker lets our packets by a FORWARD chain that drops by default, as Docker leaves it: a packet must be accepted
// by every table.
func (f nft) passDocker(action string) {
	out, err := exec.Command("iptables", "-w", "-S", "FORWARD").Output()
	if err != nil {
		return // not there: then nothing is in the way
	}
	for _, rule := range [][]string{{"-i", f.Name, "-j", "ACCEPT"}, {"-o", f.Name, "-j", "ACCEPT"}} {
		there := strings.Contains(string(out), "-A FORWARD "+strings.Join(rule, " "))
		if (action == "-I" && (there || !strings.Contains(string(out), "-P FORWARD DROP"))) || (action == "-D" && !there) {
			continue
		}
		if err := run("", "iptables", append([]string{"-w", action, "FORWARD"}, rule...)...); err != nil {
			f.Log.Warn("changing the FORWARD chain", "error", err)
		}
	}
}

// remove deletes our table, and the two rules in docker's chain.
func (f nft) remove() error {
	if f.Outward {
		f.passDocker("-D")
	}
	return run("", "nft", "delete", "table", "inet", f.Name)
}
