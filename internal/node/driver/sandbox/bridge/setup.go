package bridge

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/drover-project/drover/internal/node/egress"
)

// ensure makes the bridge with its rules, once, or takes over that of an earlier agent. It returns its index. When the
// machine got other name servers, the rules are made again.
func (n *Network) ensure() (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	changed := resolversChanged()
	if n.up != 0 && changed.Equal(n.resolvers) {
		return n.up, nil
	}
	n.resolvers = changed
	attrs := netlink.NewLinkAttrs()
	attrs.Name = n.cfg.Name
	if err := netlink.LinkAdd(&netlink.Bridge{LinkAttrs: attrs}); err != nil && !errors.Is(err, os.ErrExist) {
		return 0, fmt.Errorf("making the bridge %s: %w", n.cfg.Name, err)
	}
	link, err := netlink.LinkByName(n.cfg.Name)
	if err != nil {
		return 0, fmt.Errorf("finding the bridge %s: %w", n.cfg.Name, err)
	}
	if err := n.fence.Set(); err != nil { // before anything can pass
		return 0, fmt.Errorf("setting the bridge's rules: %w", err)
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

// Close removes the bridge and the rules if nothing is connected any more, of other agents neither: for one that ends
// cleanly.
func (n *Network) Close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.used) > 0 || n.up == 0 {
		return nil
	}
	if ports, err := os.ReadDir("/sys/class/net/" + n.cfg.Name + "/brif"); err == nil && len(ports) > 0 {
		return nil
	}
	n.up = 0
	return errors.Join(deleteLink(n.cfg.Name), n.fence.Remove())
}

// resolversChanged is when the machine's list of name servers was written.
func resolversChanged() time.Time {
	info, err := os.Stat(egress.ResolverFile())
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// isNoDevice reports whether the interface went between finding and removing it.
func isNoDevice(err error) bool { return errors.Is(err, syscall.ENODEV) }
