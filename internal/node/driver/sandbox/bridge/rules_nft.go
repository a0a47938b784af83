package bridge

import (
	"log/slog"
	"net/netip"
	"os/exec"
	"strings"
)

// nft keeps the rules in a table of their own.
type nft struct {
	name   string
	subnet netip.Prefix
	log    *slog.Logger
}

// set replaces our table in one step. Guests reach the outside, and answer; they reach nothing of the machine.
func (f nft) set() error {
	script := strings.NewReplacer("BRIDGE", f.name, "SUBNET", f.subnet.String()).Replace(`
add table inet BRIDGE
delete table inet BRIDGE
table inet BRIDGE {
	chain input {
		type filter hook input priority -10; policy accept;
		iifname "BRIDGE" ct state established,related accept
		iifname "BRIDGE" ip protocol icmp accept
		iifname "BRIDGE" drop
	}
	chain forward {
		type filter hook forward priority -10; policy accept;
		iifname "BRIDGE" oifname "BRIDGE" drop
		iifname "BRIDGE" ip saddr != SUBNET drop
		iifname "BRIDGE" ip daddr 169.254.0.0/16 drop
		iifname "BRIDGE" meta nfproto ipv6 drop
		oifname "BRIDGE" ct state established,related accept
		oifname "BRIDGE" drop
	}
	chain postrouting {
		type nat hook postrouting priority 100; policy accept;
		ip saddr SUBNET oifname != "BRIDGE" masquerade
	}
}
`)
	if err := run(script, "nft", "-f", "-"); err != nil {
		return err
	}
	f.passDocker("-I")
	return nil
}

// passDocker lets our packets by a FORWARD chain that drops by default, as Docker leaves it: a packet must be accepted
// by every table.
func (f nft) passDocker(action string) {
	out, err := exec.Command("iptables", "-w", "-S", "FORWARD").Output()
	if err != nil {
		return // not there: then nothing is in the way
	}
	for _, rule := range [][]string{{"-i", f.name, "-j", "ACCEPT"}, {"-o", f.name, "-j", "ACCEPT"}} {
		there := strings.Contains(string(out), "-A FORWARD "+strings.Join(rule, " "))
		if (action == "-I" && (there || !strings.Contains(string(out), "-P FORWARD DROP"))) || (action == "-D" && !there) {
			continue
		}
		if err := run("", "iptables", append([]string{"-w", action, "FORWARD"}, rule...)...); err != nil {
			f.log.Warn("changing the FORWARD chain", "error", err)
		}
	}
}

func (f nft) remove() error {
	f.passDocker("-D")
	return run("", "nft", "delete", "table", "inet", f.name)
}
