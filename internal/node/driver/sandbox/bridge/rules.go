package bridge

import (
	"errors"
	"os"
	"os/exec"
	"strings"

	"drover"
)

// firewall keeps guests from the machine and from each other, and lets them out.
type firewall interface {
	set() error
	remove() error
}

// The firewalls, the better first.
const (
	firewallNFT      = "nft"
	firewallIPTables = "iptables"
)

// firewall is the one that works on this machine. Errors: Unavailable.
func (n *Network) firewall() (firewall, error) {
	kind, err := n.kind()
	switch {
	case err != nil:
		return nil, drover.Errorf(drover.Unavailable, "%w", err)
	case kind == firewallNFT:
		return nft{n.cfg.Name, n.cfg.Subnet, n.cfg.Log}, nil
	default:
		return iptables{n.cfg.Name, n.cfg.Subnet}, nil
	}
}

// Missing says what the machine lacks for a bridge, "" if nothing.
func (n *Network) Missing() string {
	if os.Geteuid() != 0 {
		return "the agent is not root"
	}
	if _, err := n.kind(); err != nil {
		return err.Error()
	}
	return ""
}

// What the trials hand to the kernel needs of it what our rules need. nft only checks it; iptables, where listing what is
// there works without the kernel's part too, makes a chain and takes it back in one step.
const (
	trialTable = "table inet drover-trial { chain c { type nat hook postrouting priority 100; masquerade; }; }\n"
	trialChain = "*nat\n:drover-trial - [0:0]\n-A drover-trial -j MASQUERADE\n-F drover-trial\n-X drover-trial\nCOMMIT\n"
)

// findFirewall tries what is installed: a program is not enough where the kernel lacks its part. Errors are for people.
func findFirewall(want string) (string, error) {
	var why []string
	for _, try := range []struct{ kind, stdin, program, args string }{
		{firewallNFT, trialTable, "nft", "--check --file -"},
		{firewallIPTables, trialChain, "iptables-restore", "-w --noflush"},
	} {
		if want != "" && want != try.kind {
			continue
		}
		if _, err := exec.LookPath(try.program); err != nil {
			why = append(why, try.program+" is not installed")
			continue
		}
		if err := run(try.stdin, try.program, strings.Fields(try.args)...); err != nil {
			why = append(why, summary(err.Error()))
			continue
		}
		return try.kind, nil
	}
	return "", errors.New(strings.Join(why, ", ") + " (apt-get install nftables)") //nolint:err113 // for people
}

// summary is a message's first line, and the next one where that only announces it.
func summary(message string) string {
	first, rest, _ := strings.Cut(message, "\n")
	if first = strings.TrimSpace(first); strings.HasSuffix(first, ":") {
		next, _, _ := strings.Cut(rest, "\n")
		return first + " " + next
	}
	return first
}
