package egress

import (
	"errors"
	"os/exec"
	"strings"
)

// The firewalls, the better first.
const (
	firewallNFT      = "nft"
	firewallIPTables = "iptables"
)

// trial asks the kernel to accept the kinds of rules that we need. nft can check rules without making them. iptables
// cannot: it makes a chain and removes it in one step, as a mere listing works without the kernel's modules too.
type trial struct {
	kind, program, args string
	base                string
	count, rate, reject string // of one rule each
	before, after       string
	socket, ports       string // whole; "" = cannot be had
}

var trials = []trial{ // a constant
	{
		kind: firewallNFT, program: "nft", args: "--check --file -",
		base:   "table inet drover-trial { chain c { type nat hook postrouting priority 100; masquerade; }; }\n",
		before: "table inet drover-trial { set s { type ipv4_addr; size 16; flags dynamic; }; chain c { type filter hook forward priority -10; ",
		count:  "ct state new add @s { ip saddr ct count over 5 } drop; ",
		rate:   "update @s { ip saddr limit rate over 100000/second burst 100000 packets } drop; ",
		reject: "reject with icmp type admin-prohibited; ",
		after:  "}; }\n",
		socket: "table inet drover-trial { chain c { type filter hook input priority -10; socket mark 1 accept; }; }\n",
		ports: "table bridge drover-trial { set s { type ifname . ipv4_addr; size 16; }; chain c { type filter hook prerouting priority -300; " +
			"iifname . ip saddr @s accept; iifname . arp saddr ip @s accept; }; }\n",
	},
	{
		kind: firewallIPTables, program: "iptables-restore", args: "-w --noflush",
		base:   "*nat\n:drover-trial - [0:0]\n-A drover-trial -j MASQUERADE\n-F drover-trial\n-X drover-trial\nCOMMIT\n",
		before: "*filter\n:drover-trial - [0:0]\n-A drover-trial ",
		count:  "-m connlimit --connlimit-above 5 --connlimit-mask 32 -j DROP",
		rate:   "-m hashlimit --hashlimit-above 100000/sec --hashlimit-burst 100000 --hashlimit-mode srcip --hashlimit-name drover-trial -j DROP",
		reject: "-j REJECT --reject-with icmp-admin-prohibited",
		after:  "\n-F drover-trial\n-X drover-trial\nCOMMIT\n",
		socket: "*filter\n:drover-trial - [0:0]\n-I INPUT -j drover-trial\n-A drover-trial -m socket --nowildcard --restore-skmark -j RETURN\n" +
			"-D INPUT -j drover-trial\n-F drover-trial\n-X drover-trial\nCOMMIT\n",
	},
}

// findFirewall tries what is installed: a program is not enough where the kernel lacks its part. Errors are for people.
func findFirewall(want string) (found, error) {
	var why []string
	for _, t := range trials {
		if want != "" && want != t.kind {
			continue
		}
		if _, err := exec.LookPath(t.program); err != nil {
			why = append(why, t.program+" is not installed")
			continue
		}
		if err := t.run(t.base); err != nil {
			why = append(why, summary(err.Error()))
			continue
		}
		can := func(rule string) bool { return t.run(t.before+rule+t.after) == nil }
		whole := func(script string) bool { return script != "" && t.run(script) == nil }
		return found{t.kind, features{
			count: can(t.count), rate: can(t.rate), reject: can(t.reject), socket: whole(t.socket), ports: whole(t.ports),
		}}, nil
	}
	return found{}, errors.New(strings.Join(why, ", ") + " (apt-get install nftables)") // for people
}

func (t trial) run(script string) error { return run(script, t.program, strings.Fields(t.args)...) }

// summary is a message's first line, and the next one where that only announces it.
func summary(message string) string {
	first, rest, _ := strings.Cut(message, "\n")
	if first = strings.TrimSpace(first); strings.HasSuffix(first, ":") {
		next, _, _ := strings.Cut(rest, "\n")
		return first + " " + next
	}
	return first
}
