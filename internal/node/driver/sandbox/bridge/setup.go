package bridge

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"github.com/vishvananda/netlink"
)

// Missing says what the machine lacks for a bridge, "" if nothing.
func Missing() string {
	if os.Geteuid() != 0 {
		return "the agent is not root"
	}
	if _, err := exec.LookPath("nft"); err != nil {
		return "nft is not installed (apt-get install nftables)"
	}
	return ""
}

// ensure makes the bridge with its rules, once, or takes over that of an earlier agent. It returns its index.
func (n *Network) ensure() (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.up != 0 {
		return n.up, nil
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name = n.cfg.Name
	if err := netlink.LinkAdd(&netlink.Bridge{LinkAttrs: attrs}); err != nil && !errors.Is(err, os.ErrExist) {
		return 0, fmt.Errorf("making the bridge %s: %w", n.cfg.Name, err)
	}
	link, err := netlink.LinkByName(n.cfg.Name)
	if err != nil {
		return 0, fmt.Errorf("finding the bridge %s: %w", n.cfg.Name, err)
	}
	if err := n.rules(); err != nil { // before anything can pass
		return 0, err
	}
	if err := netlink.AddrReplace(link, &netlink.Addr{IPNet: n.ipnet(n.Gateway())}); err != nil {
		return 0, fmt.Errorf("giving the bridge its address: %w", err)
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return 0, fmt.Errorf("bringing the bridge up: %w", err)
	}
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0); err != nil {
		return 0, fmt.Errorf("switching forwarding on: %w", err)
	}
	n.up = link.Attrs().Index
	return n.up, nil
}

// rules replaces our table in one step. Guests reach the outside, and answer; they reach nothing of the machine.
func (n *Network) rules() error {
	script := strings.NewReplacer("BRIDGE", n.cfg.Name, "SUBNET", n.cfg.Subnet.String()).Replace(`
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
		return fmt.Errorf("setting the bridge's rules: %w", err)
	}
	n.passDocker("-I")
	return nil
}

// passDocker lets our packets by a FORWARD chain that drops by default, as Docker leaves it: a packet must be accepted
// by every table.
func (n *Network) passDocker(action string) {
	out, err := exec.Command("iptables", "-w", "-S", "FORWARD").Output()
	if err != nil {
		return // not there: then nothing is in the way
	}
	for _, rule := range [][]string{{"-i", n.cfg.Name, "-j", "ACCEPT"}, {"-o", n.cfg.Name, "-j", "ACCEPT"}} {
		there := strings.Contains(string(out), "-A FORWARD "+strings.Join(rule, " "))
		if (action == "-I" && (there || !strings.Contains(string(out), "-P FORWARD DROP"))) || (action == "-D" && !there) {
			continue
		}
		if err := run("", "iptables", append([]string{"-w", action, "FORWARD"}, rule...)...); err != nil {
			n.cfg.Log.Warn("changing the FORWARD chain", "error", err)
		}
	}
}

// Close removes the bridge and the rules if nothing is connected any more: for an agent that ends cleanly.
func (n *Network) Close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.used) > 0 || n.up == 0 {
		return nil
	}
	n.up = 0
	n.passDocker("-D")
	return errors.Join(deleteLink(n.cfg.Name), run("", "nft", "delete", "table", "inet", n.cfg.Name))
}

func run(stdin, name string, args ...string) error {
	c := exec.Command(name, args...)
	c.Stdin = strings.NewReader(stdin)
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, strings.TrimSpace(string(out)))
	}
	return nil
}

func isNoDevice(err error) bool { return errors.Is(err, syscall.ENODEV) }
