package egress

import (
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"strings"
)

// iptables keeps the rules in chains of their own, for machines without nft.
type iptables struct{ Config }

// gateway is the machine's address on the bridge.
func (c Config) gateway() netip.Addr { return c.Subnet.Addr().Next() }

// hooks are where the chains are called from.
func (f iptables) hooks() [][]string {
	list := [][]string{
		{"filter", "INPUT", "-i", f.Name, "-j", f.Name + "-in"},
		{"filter", "FORWARD", "-i", f.Name, "-j", f.Name + "-fwd"},
		{"filter", "FORWARD", "-o", f.Name, "-j", f.Name + "-fwd"},
	}
	if f.Outward {
		list = append(list, []string{"nat", "POSTROUTING", "-j", f.Name + "-nat"})
	}
	return list
}

// set fills our chains in one step for each table, then has them called first.
func (f iptables) set(r rules) error {
	if err := run(f.tables(r), "iptables-restore", "-w", "--noflush"); err != nil {
		return err
	}
	for _, h := range f.hooks() {
		if run("", "iptables", append([]string{"-w", "-t", h[0], "-C"}, h[1:]...)...) == nil {
			continue
		}
		if err := run("", "iptables", append([]string{"-w", "-t", h[0], "-I"}, h[1:]...)...); err != nil {
			return err
		}
	}
	return nil
}

// tables is the input of iptables-restore. A chain that it names is emptied and filled in the same step; all others
// stay. Five chains carry the rules: "in" to the machine, "pub" to what it publishes, "fwd" beyond it, "out" for what
// leaves, "new" for new connections.
func (f iptables) tables(r rules) string {
	var t text
	name := f.Name
	t.line("*filter\n:%s-in - [0:0]\n:%s-fwd - [0:0]\n:%s-out - [0:0]\n:%s-new - [0:0]\n:%s-pub - [0:0]", name, name, name, name, name)
	f.flood(&t, r, name+"-in")
	t.line("-A %s-in -d %s -j DROP", name, loopback)
	t.line("-A %s-in -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT", name)
	f.resolvers(&t, r, name+"-in")
	t.line("-A %s-in -p icmp -j %s-new", name, name)
	if r.socket && f.Jobs.IsValid() {
		t.line("-A %s-in -s %s -m socket --nowildcard --restore-skmark -j %s-pub", name, f.Jobs, name)
		t.line("-A %s-pub -d %s -m mark --mark %#x -j %s-new", name, f.gateway(), Mark, name)
		for _, private := range ip4.of(DefaultAllowJobs()) { // see nft.published
			t.line("-A %s-pub -d %s -m mark --mark %#x -j %s-out", name, private, Mark, name)
		}
		t.line("-A %s-pub -m mark --mark %#x -j %s-new", name, Mark, name)
	}
	t.line("-A %s-in -j DROP", name)
	t.line("-A %s-fwd -i %s -o %s -j DROP", name, name, name)
	t.line("-A %s-fwd -i %s -j %s-out", name, name, name)
	t.line("-A %s-fwd -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT", name)
	t.line("-A %s-fwd -j DROP", name)
	f.outward(&t, r)
	t.line("COMMIT")
	if f.Outward {
		t.line("*nat\n:%s-nat - [0:0]\n-A %s-nat -s %s ! -o %s -j MASQUERADE\nCOMMIT", name, name, f.Subnet, name)
	}
	return t.String()
}

// flood drops what is spoofed or too much.
func (f iptables) flood(t *text, r rules, chain string) {
	t.line("-A %s ! -s %s -j DROP", chain, f.Subnet)
	if n := f.Policy.PacketRate; r.rate && n > 0 {
		t.line("-A %s %s -j DROP", chain, f.over("p", n, n))
	}
}

// resolvers opens DNS to the name servers that guests are told of, also where their addresses are closed otherwise.
func (f iptables) resolvers(t *text, r rules, chain string) {
	for _, p := range r.resolvers {
		for _, protocol := range []string{"udp", "tcp"} {
			t.line("-A %s -d %s -p %s --dport 53 -j %s-new", chain, p, protocol, f.Name)
		}
	}
}

// outward writes what guests may reach. The order decides: first what is allowed for jobs or runners, then the closed
// networks, then the Internet. Every new connection goes through the chain that counts it.
func (f iptables) outward(t *text, r rules) {
	out, opening := f.Name+"-out", f.Name+"-new"
	f.flood(t, r, out)
	t.line("-A %s -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT", out)
	t.line("-A %s -m conntrack --ctstate INVALID -j DROP", out)
	f.resolvers(t, r, out)
	to := func(source string, list []netip.Prefix, target string) {
		for _, p := range list {
			t.line("-A %s %s-d %s -j %s", out, source, p, target)
		}
	}
	runners, jobs := "", ""
	if f.Jobs.IsValid() {
		runners, jobs = "! -s "+f.Jobs.String()+" ", "-s "+f.Jobs.String()+" "
	}
	verdict := "DROP"
	if r.reject {
		verdict = "REJECT --reject-with icmp-admin-prohibited"
	}
	to(jobs, r.exactJobs, opening)
	to(runners, r.exact, opening)
	to("", r.metadata, verdict)
	to(jobs, r.allowJobs, opening)
	to(runners, r.allow, opening)
	to("", r.special, verdict)
	t.line("-A %s -j %s", out, opening)
	if n := f.Policy.ConnectionRate; r.rate && n > 0 {
		t.line("-A %s %s -j DROP", opening, f.over("c", n, max(n, f.Policy.Connections)))
	}
	if n := f.Policy.Connections; r.count && n > 0 {
		t.line("-A %s -m connlimit --connlimit-above %d --connlimit-mask 32 -j DROP", opening, n)
	}
	t.line("-A %s -j ACCEPT", opening)
}

// over matches what is above a rate, by its sender.
func (f iptables) over(what string, rate, burst int) string {
	return fmt.Sprintf(
		"-m hashlimit --hashlimit-above %d/sec --hashlimit-burst %d --hashlimit-mode srcip --hashlimit-htable-max %d --hashlimit-name %s-%s",
		rate, burst, maxGuests, f.Name, what,
	)
}

// list is all rules that name our chains.
func (f iptables) list() (string, error) {
	var b strings.Builder
	for _, table := range []string{"filter", "nat"} {
		out, err := exec.Command("iptables", "-w", "-t", table, "-S").Output()
		if err != nil {
			return "", fmt.Errorf("listing the rules of iptables: %w", err)
		}
		for line := range strings.Lines(string(out)) {
			if strings.Contains(line, " "+f.Name+"-") {
				b.WriteString(line)
			}
		}
	}
	return b.String(), nil
}

// chains are those of the table filter.
var chains = []string{"-in", "-fwd", "-out", "-new", "-pub"} // a constant

// remove takes all of our chains away. It goes on after errors, and errors of what was not there are among those it
// returns.
func (f iptables) remove() error {
	var errs []error
	for _, h := range f.hooks() {
		errs = append(errs, run("", "iptables", append([]string{"-w", "-t", h[0], "-D"}, h[1:]...)...))
	}
	for _, chain := range chains { // emptied first: they call each other
		errs = append(errs, run("", "iptables", "-w", "-F", f.Name+chain))
	}
	for _, chain := range chains {
		errs = append(errs, run("", "iptables", "-w", "-X", f.Name+chain))
	}
	if f.Outward {
		errs = append(
			errs, run("", "iptables", "-w", "-t", "nat", "-F", f.Name+"-nat"), run("", "iptables", "-w", "-t", "nat", "-X", f.Name+"-nat"),
		)
	}
	return errors.Join(errs...)
}
