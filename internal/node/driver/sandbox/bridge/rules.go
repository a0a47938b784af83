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

// trialTable needs of the kernel what our rules need; it is checked, not made.
const trialTable = "table inet drover-trial { chain c { type nat hook postrouting priority 100; masquerade; }; }\n"

// findFirewall tries what is installed: a program is not enough where the kernel lacks its part. Errors are for people.
func findFirewall(want string) (string, error) {
	tries := map[string][]string{firewallNFT: {"nft", "--check", "--file", "-"}, firewallIPTables: {"iptables", "-w", "-t", "nat", "-S"}}
	var why []string
	for _, kind := range []string{firewallNFT, firewallIPTables} {
		if want != "" && want != kind {
			continue
		}
		try := tries[kind]
		if _, err := exec.LookPath(try[0]); err != nil {
			why = append(why, try[0]+" is not installed")
			continue
		}
		if err := run(trialTable, try[0], try[1:]...); err != nil {
			first, _, _ := strings.Cut(err.Error(), "\n")
			why = append(why, first)
			continue
		}
		return kind, nil
	}
	return "", errors.New(strings.Join(why, ", ") + " (apt-get install nftables)") //nolint:err113 // for people
}
