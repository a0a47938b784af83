package bridge

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
)

// Inside is the interface's name in the sandbox.
const Inside = "eth0"

// Connect gives the network namespace of a process the address, which was taken before. The bridge is made if it is
// not there. Errors leave nothing but the address, which Disconnect gives back.
func (n *Network) Connect(a netip.Addr, pid int) error {
	return n.ConnectAt(a, fmt.Sprintf("/proc/%d/ns/net", pid))
}

// ConnectAt is Connect for the namespace at a path.
func (n *Network) ConnectAt(a netip.Addr, path string) error {
	bridge, err := n.ensure()
	if err != nil {
		return err
	}
	ns, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("opening the network namespace: %w", err)
	}
	defer ns.Close()
	err = addPair(a, bridge, int(ns.Fd()))
	if errors.Is(err, os.ErrExist) { // another agent was faster
		return drover.Errorf(drover.Unavailable, "another agent of this machine has the address %s", a)
	}
	if err != nil {
		return fmt.Errorf("making the network pair %s: %w", Device(a), err)
	}
	if err := n.configure(a, netns.NsHandle(ns.Fd())); err != nil {
		return fmt.Errorf("configuring the sandbox's network: %w", err)
	}
	return nil
}

// addPair makes the pair with one end in the namespace, in one request. The machine's end is on the bridge, isolated, and up.
func addPair(a netip.Addr, bridge, ns int) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MasterIndex = Device(a), bridge
	pair := &netlink.Veth{LinkAttrs: attrs, PeerName: Inside, PeerNamespace: netlink.NsFd(ns)}
	if err := netlink.LinkAdd(pair); err != nil {
		return err
	}
	// Isolated ports of a bridge talk to the bridge only, not to each other.
	if err := netlink.LinkSetIsolated(pair, true); err != nil {
		return errors.Join(fmt.Errorf("isolating it: %w", err), netlink.LinkDel(pair))
	}
	return netlink.LinkSetUp(pair)
}

// configure gives the end inside its address and the route out. It needs no thread in the namespace: the socket is made there.
func (n *Network) configure(a netip.Addr, ns netns.NsHandle) error {
	h, err := netlink.NewHandleAt(ns, netlinkRoute)
	if err != nil {
		return err
	}
	defer h.Close()
	link, err := h.LinkByName(Inside)
	if err != nil {
		return err
	}
	// All goes through the bridge's address: a guest that looks for neighbours would fill the table of them, which the whole
	// machine shares.
	if err := h.AddrAdd(link, &netlink.Addr{IPNet: &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(32, 32)}}); err != nil {
		return fmt.Errorf("adding the address: %w", err)
	}
	if err := h.LinkSetUp(link); err != nil {
		return err
	}
	route := &netlink.Route{LinkIndex: link.Attrs().Index, Gw: n.Gateway().AsSlice(), Flags: int(netlink.FLAG_ONLINK)}
	if err := h.RouteAdd(route); err != nil {
		return fmt.Errorf("adding the route: %w", err)
	}
	return nil
}

const netlinkRoute = 0 // NETLINK_ROUTE

// ipnet is an address with the whole subnet's mask, as the bridge has it.
func (n *Network) ipnet(a netip.Addr) *net.IPNet {
	return &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(n.cfg.Subnet.Bits(), 32)}
}

// Reset removes the pair of an address that is kept, for its namespace to be made anew.
func (n *Network) Reset(a netip.Addr) error { return deleteLink(Device(a)) }

// The kernel removes a pair with its namespace, many at once. To remove one by itself takes 30 ms, in which no other
// network of the machine can be changed.
const (
	removePatience = time.Second
	removeLook     = 2 * time.Millisecond
)

// Disconnect removes the pair of a namespace whose processes have ended, and gives the address back. Idempotent.
func (n *Network) Disconnect(ctx context.Context, a netip.Addr) error {
	late := n.cfg.Clock.Now().Add(removePatience)
	for there(a) && n.cfg.Clock.Now().Before(late) && clock.Sleep(ctx, n.cfg.Clock, removeLook) {
	}
	if !there(a) {
		n.release(a)
		return nil
	}
	if err := deleteLink(Device(a)); err != nil {
		return fmt.Errorf("removing the network pair %s: %w", Device(a), err)
	}
	n.release(a)
	return nil
}

// there asks the machine's interfaces instead of our memory, so it also sees pairs of other agents.
func there(a netip.Addr) bool {
	_, err := os.Lstat("/sys/class/net/" + Device(a))
	return err == nil
}

// deleteLink removes an interface; one that is gone is no error.
func deleteLink(name string) error {
	link, err := netlink.LinkByName(name)
	if err == nil {
		err = netlink.LinkDel(link)
	}
	if missing := (netlink.LinkNotFoundError{}); errors.As(err, &missing) || errors.Is(err, os.ErrNotExist) || isNoDevice(err) {
		return nil // it went with its namespace
	}
	return err
}
