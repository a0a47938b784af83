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

// set replaces our tables in one step.
func (f nft) set(r rules) error {
	if err := run(f.table(r)+f.ports(r), "nft", "-f", "-"); err != nil {
		return err
	}
	if f.Outward {
		f.passDocker("-I")
	}
	return nil
}

// list is our tables without what grows in their sets, and whether Docker's chain lets their packets by.
func (f nft) list() (string, error) {
	out, err := exec.Command("nft", "-t", "list", "table", "inet", f.Name).Output()
	if err != nil {
		return "", fmt.Errorf("listing the rules of nft: %w", err)
	}
	list := string(out)
	if got, err := exec.Command("nft", "-t", "list", "table", "bridge", f.Name).Output(); err == nil {
		list += string(got)
	}
	for _, program := range f.programs() {
		if got, err := exec.Command(program, "-w", "-S", "FORWARD").Output(); err == nil {
			list += fmt.Sprintln(program, f.missing(string(got), "-I"))
		}
	}
	return list, nil
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
	if f.Subnet6.IsValid() {
		t.line("		iifname %q icmpv6 type echo-request goto opening", f.Name)
	}
	f.published(&t, r, ip4, f.Subnet, f.Jobs)
	f.published(&t, r, ip6, f.Subnet6, f.Jobs6)
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
		t.line("		ip saddr %s oifname != %q masquerade", f.Subnet, f.Name)
		if f.Subnet6.IsValid() {
			t.line("		ip6 saddr %s oifname != %q masquerade", f.Subnet6, f.Name)
		}
		t.line("	}")
	}
	t.line("}")
	return t.String()
}

// published opens what the agent's sockets publish to tasks of jobs. It is open at the machine's address on the bridge, at
// private ones what the policy opens, as if they were another machine's, and at all others.
func (f nft) published(t *text, r rules, family family, subnet, jobs netip.Prefix) {
	if !r.socket || !jobs.IsValid() {
		return
	}
	from := fmt.Sprintf("		iifname %q %s saddr %s meta l4proto { tcp, udp } ", f.Name, family, jobs)
	t.line("%s%s daddr %s socket mark %#x goto opening", from, family, subnet.Addr().Next(), Mark)
	t.line("%s%s daddr %s socket mark %#x goto outward", from, family, nftSet(family.of(DefaultAllowJobs())), Mark)
	t.line("%ssocket mark %#x goto opening", from, Mark)
}

// each calls do with the families that guests have addresses of, and what the names of their sets end with.
func (f nft) each(do func(family family, set, kind string)) {
	do(ip4, "", "ipv4_addr")
	if f.Subnet6.IsValid() {
		do(ip6, "6", "ipv6_addr")
	}
}

// neighbourly are the messages by which neighbours of IPv6 and routers are found. No guest needs to send any: it is told by the agent.
const neighbourly = "icmpv6 type { nd-router-solicit, nd-router-advert, nd-neighbor-solicit, nd-neighbor-advert, nd-redirect, " +
	"mld-listener-query, mld-listener-report, mld-listener-done, mld2-listener-report } drop"

// loopback is the machine's. A kernel drops what comes for it from elsewhere, unless route_localnet is set, as Kubernetes has it.
const loopback = "127.0.0.0/8"

// arriving writes the chain before connection tracking: it drops forged senders and floods where that is cheapest, and IPv6 that nobody
// has.
func (f nft) arriving(t *text, r rules) {
	n := f.Policy.PacketRate
	bounded := r.rate && n > 0
	f.each(func(_ family, set, kind string) {
		if bounded {
			t.line("	set packets%s { type %s; size %d; flags dynamic,timeout; timeout 1m; }", set, kind, maxGuests)
		}
	})
	t.line("	chain arriving {")
	t.line("		type filter hook prerouting priority -300; policy accept;")
	if f.Subnet6.IsValid() {
		t.line("		iifname %q ip6 saddr != %s drop", f.Name, f.Jobs6)
		t.line("		iifname %q %s", f.Name, neighbourly)
	} else {
		t.line("		iifname %q meta nfproto ipv6 drop", f.Name)
	}
	t.line("		iifname %q ip saddr != %s drop", f.Name, f.Subnet)
	t.line("		iifname %q ip daddr %s drop", f.Name, loopback)
	f.each(func(family family, set, _ string) {
		if bounded {
			t.line("		iifname %q update @packets%s { %s saddr limit rate over %d/second burst %d packets } drop", f.Name, set, family, n, n)
		}
	})
	t.line("	}")
}

// outward answers the packets that leave, and opening counts the connections that they begin.
func (f nft) outward(t *text, r rules) {
	rate, most := f.Policy.ConnectionRate, f.Policy.Connections
	f.each(func(_ family, set, kind string) {
		if r.rate && rate > 0 {
			t.line("	set attempts%s { type %s; size %d; flags dynamic,timeout; timeout 1m; }", set, kind, maxGuests)
		}
		if r.count && most > 0 {
			t.line("	set connections%s { type %s; size %d; flags dynamic; }", set, kind, maxGuests)
		}
	})
	t.line("	chain opening {")
	f.each(func(family family, set, _ string) {
		if r.rate && rate > 0 {
			t.line(
				"		ct state new update @attempts%s { %s saddr limit rate over %d/second burst %d packets } drop", set, family, rate, max(rate, most),
			)
		}
		if r.count && most > 0 {
			t.line("		ct state new add @connections%s { %s saddr ct count over %d } drop", set, family, most)
		}
	})
	t.line("		accept\n	}")
	t.line("	chain outward {")
	t.line("		ct state established,related accept")
	t.line("		ct state invalid drop")
	nftReach(t, ip4, r.features, r.reach, f.Jobs)
	if f.Subnet6.IsValid() {
		nftReach(t, ip6, r.features, r.six, f.Jobs6)
	}
	t.line("		goto opening\n	}")
}

// ports is the table in which a guest is known by its port of the bridge: it sends as nobody else, neither packets nor answers about
// addresses. Frames of any other kind stop here.
func (f nft) ports(r rules) string {
	var t text
	if !r.ports || f.Guests == nil {
		return ""
	}
	t.line("add table bridge %s\ndelete table bridge %s\ntable bridge %s {", f.Name, f.Name, f.Name)
	var devices, four, six []string
	for _, g := range f.Guests() {
		devices, four = append(devices, g.Device), append(four, g.Device+" . "+g.Address.String())
		if g.IPv6.IsValid() {
			six = append(six, g.Device+" . "+g.IPv6.String())
		}
	}
	t.line("	set ports { type ifname; elements = { %s }; }", strings.Join(devices, ", "))
	t.line("	set addresses { type ifname . ipv4_addr; elements = { %s }; }", strings.Join(four, ", "))
	if len(six) > 0 {
		t.line("	set addresses6 { type ifname . ipv6_addr; elements = { %s }; }", strings.Join(six, ", "))
	}
	t.line("	chain arriving {")
	t.line("		type filter hook prerouting priority -300; policy accept;")
	t.line("		iifname != @ports accept")
	t.line("		ether type ip iifname . ip saddr @addresses accept")
	t.line("		ether type arp iifname . arp saddr ip @addresses accept")
	if len(six) > 0 {
		t.line("		ether type ip6 %s", neighbourly)
		t.line("		ether type ip6 iifname . ip6 saddr @addresses6 accept")
	}
	t.line("		drop\n	}\n}")
	return t.String()
}

// nftReach writes what guests may reach of one family; jobs are the addresses of jobs' tasks, invalid: there are no others.
func nftReach(t *text, f family, has features, r reach, jobs netip.Prefix) {
	const opening = "goto opening"
	ofRunners, ofJobs := "", ""
	if jobs.IsValid() {
		ofRunners, ofJobs = fmt.Sprintf("%s saddr != %s ", f, jobs), fmt.Sprintf("%s saddr %s ", f, jobs)
	}
	verdict := "drop"
	if has.reject {
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

// programs change the chains that Docker has, for the families that guests have.
func (f nft) programs() []string {
	if f.Subnet6.IsValid() {
		return []string{"iptables", "ip6tables"}
	}
	return []string{"iptables"}
}

// passDocker lets our packets by a FORWARD chain that drops by default, as Docker leaves it: a packet must be accepted
// by every table.
func (f nft) passDocker(action string) {
	for _, program := range f.programs() {
		out, err := exec.Command(program, "-w", "-S", "FORWARD").Output()
		if err != nil {
			continue // not there: then nothing is in the way
		}
		for _, rule := range f.missing(string(out), action) {
			if err := run("", program, append([]string{"-w", action, "FORWARD"}, rule...)...); err != nil {
				f.Log.Warn("changing the FORWARD chain", "error", err)
			}
		}
	}
}

// missing are the rules that the action must change in a FORWARD chain as it is.
func (f nft) missing(chain, action string) (list [][]string) {
	for _, rule := range [][]string{{"-i", f.Name, "-j", "ACCEPT"}, {"-o", f.Name, "-j", "ACCEPT"}} {
		there := strings.Contains(chain, "-A FORWARD "+strings.Join(rule, " "))
		if action == "-I" && !there && strings.Contains(chain, "-P FORWARD DROP") || action == "-D" && there {
			list = append(list, rule)
		}
	}
	return list
}

// remove deletes our tables, and the two rules in docker's chain.
func (f nft) remove() error {
	if f.Outward {
		f.passDocker("-D")
	}
	const drop = "delete table %s %s\n"
	inet, ports := fmt.Sprintf(drop, "inet", f.Name), fmt.Sprintf(drop, "bridge", f.Name)
	if run(inet+ports, "nft", "-f", "-") == nil {
		return nil
	}
	return run(inet, "nft", "-f", "-") // not every kernel can have the other one
}
