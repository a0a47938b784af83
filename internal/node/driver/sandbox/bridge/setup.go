package bridge

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/drover-project/drover/internal/node/egress"
)

// ensure makes the bridge with its rules, once, or takes over that of an earlier agent. It returns its index. When the
// machine got other name servers, or the bridge is gone, they are made again.
func (n *Network) ensure() (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.ensured()
}

// ensured is ensure. n.mu is held.
func (n *Network) ensured() (int, error) {
	changed := resolversChanged()
	if n.up != 0 && n.up == indexOf(n.cfg.Name) && changed.Equal(n.resolvers) {
		return n.up, nil
	}
	if err := n.claimName(); err != nil {
		return 0, err
	}
	n.resolvers = changed
	attrs := netlink.NewLinkAttrs()
	// A bridge without an address of its own takes those of its ports, and changes it when one comes or goes.
	attrs.Name, attrs.HardwareAddr = n.cfg.Name, hardware(n.Gateway())
	if err := netlink.LinkAdd(&netlink.Bridge{LinkAttrs: attrs}); err != nil && !errors.Is(err, os.ErrExist) {
		return 0, fmt.Errorf("making the bridge %s: %w", n.cfg.Name, err)
	}
	link, err := netlink.LinkByName(n.cfg.Name)
	if err != nil {
		return 0, fmt.Errorf("finding the bridge %s: %w", n.cfg.Name, err)
	}
	if n.hardware = attrs.HardwareAddr; occupied(link.Attrs().Index) { // an agent of before may have let it change
		n.hardware = link.Attrs().HardwareAddr
	}
	if err := netlink.LinkSetHardwareAddr(link, n.hardware); err != nil {
		return 0, fmt.Errorf("giving the bridge its hardware address: %w", err)
	}
	if err := n.fence.Set(); err != nil { // before anything can pass
		return 0, fmt.Errorf("setting the bridge's rules: %w", err)
	}
	if err := n.address(link); err != nil {
		return 0, err
	}
	if err := n.forwarding(); err != nil {
		return 0, fmt.Errorf("switching forwarding on: %w", err)
	}
	n.up = link.Attrs().Index
	return n.up, nil
}

// address gives the bridge its addresses, and brings it up.
func (n *Network) address(bridge netlink.Link) error {
	if err := netlink.AddrReplace(bridge, &netlink.Addr{IPNet: ipnet(n.Gateway(), n.cfg.Subnet)}); err != nil {
		return fmt.Errorf("giving the bridge its address: %w", err)
	}
	if six := n.sixOf(n.Gateway()); six.IsValid() {
		if err := netlink.AddrReplace(bridge, &netlink.Addr{IPNet: ipnet(six, n.cfg.Subnet6), Flags: syscall.IFA_F_NODAD}); err != nil {
			return fmt.Errorf("giving the bridge its address of IPv6: %w", err)
		}
	}
	if err := netlink.LinkSetUp(bridge); err != nil {
		return fmt.Errorf("bringing the bridge up: %w", err)
	}
	return nil
}

const knobsOf6 = "/proc/sys/net/ipv6/conf/"

// forwarding makes the machine forward packets. A machine that forwards IPv6 no longer believes routers, unless it is told to: those of its
// interfaces that had their routes from one keep them.
func (n *Network) forwarding() error {
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0); err != nil || !n.cfg.Subnet6.IsValid() {
		return err
	}
	all := knobsOf6 + "all/forwarding"
	if now, err := os.ReadFile(all); err == nil && strings.TrimSpace(string(now)) != "0" {
		return nil // the machine's administrator has decided
	}
	believing, err := filepath.Glob(knobsOf6 + "*/accept_ra")
	if err != nil {
		return err
	}
	for _, knob := range believing {
		switch filepath.Base(filepath.Dir(knob)) {
		case "all", "default", "lo", n.cfg.Name:
			continue
		}
		if now, err := os.ReadFile(knob); err != nil || strings.TrimSpace(string(now)) != "1" {
			continue
		}
		if err := os.WriteFile(knob, []byte("2"), 0); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return os.WriteFile(all, []byte("1"), 0)
}

// Up makes the bridge before anybody is connected: for who listens at its address.
func (n *Network) Up() error {
	_, err := n.ensure()
	return err
}

// Mend makes again what somebody else has changed or removed: the bridge, its rules, and that our guests are on it. To be called now
// and then.
func (n *Network) Mend() {
	n.mu.Lock()
	made, index, guests := n.claim != nil, n.up, slices.Collect(maps.Keys(n.used))
	n.mu.Unlock()
	if !made {
		return
	}
	if index == indexOf(n.cfg.Name) && !n.fence.Changed() { // starts need not wait while the rules are read
		n.gather(guests, index)
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	gone := n.up != indexOf(n.cfg.Name)
	if n.claim == nil {
		return // it was closed meanwhile
	}
	n.cfg.Log.Warn("somebody else changed the bridge or its rules: they are made again", "bridge", n.cfg.Name, "removed", gone)
	n.up = 0
	index, err := n.ensured()
	if err == nil && gone {
		var errs []error
		for a := range n.used {
			errs = append(errs, n.rejoin(a, index))
		}
		err = errors.Join(errs...)
	}
	if err != nil {
		n.cfg.Log.Error("making the bridge and its rules again", "bridge", n.cfg.Name, "error", err)
	}
}

// gather puts those guests onto the bridge again that somebody else took from it.
func (n *Network) gather(guests []netip.Addr, bridge int) {
	links, err := netlink.LinkList()
	if err != nil {
		return // the next look is soon
	}
	astray := map[string]bool{}
	for _, l := range links {
		astray[l.Attrs().Name] = l.Attrs().MasterIndex != bridge
	}
	for _, a := range guests {
		if !astray[Device(a)] {
			continue
		}
		n.cfg.Log.Warn("somebody else took a guest from the bridge: it is put there again", "bridge", n.cfg.Name, "device", Device(a))
		if err := n.rejoin(a, bridge); err != nil {
			n.cfg.Log.Error("putting a guest onto the bridge again", "bridge", n.cfg.Name, "device", Device(a), "error", err)
		}
	}
}

// rejoin puts a guest's pair onto the bridge if it is on none: that on which it was has been removed.
func (n *Network) rejoin(a netip.Addr, bridge int) error {
	link, err := netlink.LinkByName(Device(a))
	if missing := (netlink.LinkNotFoundError{}); errors.As(err, &missing) {
		return nil // it has ended, or begins
	}
	if err != nil || link.Attrs().MasterIndex == bridge {
		return err
	}
	if err := netlink.LinkSetDown(link); err != nil { // a port begins with what others must not have: it learns, and is not isolated
		return err
	}
	if err := netlink.LinkSetMasterByIndex(link, bridge); err != nil {
		return fmt.Errorf("putting %s onto the bridge again: %w", Device(a), err)
	}
	if err := n.secure(a, link); err != nil {
		return errors.Join(err, netlink.LinkSetNoMaster(link))
	}
	return netlink.LinkSetUp(link)
}

// indexOf is the index of an interface in our network namespace, of which /sys need not be; 0 if there is none of that name.
func indexOf(name string) int {
	request, err := unix.NewIfreq(name)
	if err != nil {
		return 0
	}
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0
	}
	defer unix.Close(s)
	if unix.IoctlIfreq(s, unix.SIOCGIFINDEX, request) != nil {
		return 0
	}
	return int(request.Uint32())
}

// Close removes the bridge and the rules if nothing is connected any more and no other agent uses it: for one that ends
// cleanly.
func (n *Network) Close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.used) > 0 || n.up == 0 {
		return nil
	}
	index := n.up
	n.up = 0
	alone, unclaim := n.unclaim()
	if !alone || occupied(index) { // of an agent that was killed, or is too old to claim it
		return unclaim()
	}
	return errors.Join(deleteLink(n.cfg.Name), n.fence.Remove(), unclaim())
}

// occupied reports whether any interface is on the bridge.
func occupied(bridge int) bool {
	links, err := netlink.LinkList()
	return err != nil || slices.ContainsFunc(links, func(l netlink.Link) bool { return l.Attrs().MasterIndex == bridge })
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
