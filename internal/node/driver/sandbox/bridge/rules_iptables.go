package bridge

import (
	"errors"
	"net/netip"
	"os"
	"strings"
)

// iptables keeps the rules in chains of their own, for machines without nft.
type iptables struct {
	name   string
	subnet netip.Prefix
}

// hooks are where the chains are called from.
func (f iptables) hooks() [][]string {
	return [][]string{
		{"filter", "INPUT", "-i", f.name, "-j", f.name + "-in"},
		{"filter", "FORWARD", "-i", f.name, "-j", f.name + "-fwd"},
		{"filter", "FORWARD", "-o", f.name, "-j", f.name + "-fwd"},
		{"nat", "POSTROUTING", "-j", f.name + "-nat"},
	}
}

// set fills our chains in one step for each table, then has them called first. There is no IPv6 on the bridge.
func (f iptables) set() error {
	script := strings.NewReplacer("BRIDGE", f.name, "SUBNET", f.subnet.String()).Replace(`*filter
:BRIDGE-in - [0:0]
:BRIDGE-fwd - [0:0]
-A BRIDGE-in -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT
-A BRIDGE-in -p icmp -j ACCEPT
-A BRIDGE-in -j DROP
-A BRIDGE-fwd -i BRIDGE -o BRIDGE -j DROP
-A BRIDGE-fwd -i BRIDGE ! -s SUBNET -j DROP
-A BRIDGE-fwd -i BRIDGE -d 169.254.0.0/16 -j DROP
-A BRIDGE-fwd -i BRIDGE -j ACCEPT
-A BRIDGE-fwd -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT
-A BRIDGE-fwd -j DROP
COMMIT
*nat
:BRIDGE-nat - [0:0]
-A BRIDGE-nat -s SUBNET ! -o BRIDGE -j MASQUERADE
COMMIT
`)
	if err := os.WriteFile("/proc/sys/net/ipv6/conf/"+f.name+"/disable_ipv6", []byte("1"), 0); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := run(script, "iptables-restore", "-w", "--noflush"); err != nil {
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

func (f iptables) remove() error {
	var errs []error
	for _, h := range f.hooks() {
		errs = append(errs, run("", "iptables", append([]string{"-w", "-t", h[0], "-D"}, h[1:]...)...))
	}
	for chain, table := range map[string]string{"-in": "filter", "-fwd": "filter", "-nat": "nat"} {
		errs = append(errs, run("", "iptables", "-w", "-t", table, "-F", f.name+chain), run("", "iptables", "-w", "-t", table, "-X", f.name+chain))
	}
	return errors.Join(errs...)
}
