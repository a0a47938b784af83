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
	"golang.org/x/sys/unix"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/egress"
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
	err = n.addPair(a, bridge, int(ns.Fd()))
	if errors.Is(err, os.ErrExist) { // another agent was faster
		return drover.Errorf(drover.Unavailable, "another agent of this machine has the address %s", a)
	}
	if err != nil {
		return fmt.Errorf("making the network pair %s: %w", Device(a), err)
	}
	if err := n.configure(a, ns); err != nil {
		return fmt.Errorf("configuring the sandbox's network: %w", err)
	}
	return nil
}

// addPair makes the pair with one end in the namespace, in one request. The machine's end is on the bridge, isolated, and up.
func (n *Network) addPair(a netip.Addr, bridge, ns int) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MasterIndex = Device(a), bridge
	pair := &netlink.Veth{LinkAttrs: attrs, PeerName: Inside, PeerNamespace: netlink.NsFd(ns), PeerHardwareAddr: hardware(a)}
	if err := netlink.LinkAdd(pair); err != nil {
		return err
	}
	if err := n.secure(a, pair); err != nil {
		return errors.Join(err, netlink.LinkDel(pair))
	}
	return netlink.LinkSetUp(pair)
}

// secure has the bridge know who is at a port, so that it need not believe what it hears there.
func (n *Network) secure(a netip.Addr, port netlink.Link) error {
	// Isolated ports of a bridge talk to the bridge only, not to each other.
	if err := netlink.LinkSetIsolated(port, true); err != nil {
		return fmt.Errorf("isolating it: %w", err)
	}
	// A bridge that learns sends a guest's packets to whoever last called itself by the guest's hardware address.
	if err := netlink.LinkSetLearning(port, false); err != nil {
		return fmt.Errorf("having the bridge learn nothing from it: %w", err)
	}
	known := &netlink.Neigh{
		LinkIndex: port.Attrs().Index, Family: unix.AF_BRIDGE, State: netlink.NUD_NOARP, Flags: netlink.NTF_MASTER, HardwareAddr: hardware(a),
	}
	if err := netlink.NeighSet(known); err != nil {
		return fmt.Errorf("telling the bridge who is there: %w", err)
	}
	if six := n.sixOf(a); six.IsValid() {
		return n.introduce(six, hardware(a))
	}
	return nil
}

// introduce tells the machine where a guest's address of IPv6 is, which no guest may tell.
func (n *Network) introduce(six netip.Addr, at net.HardwareAddr) error {
	bridge, err := netlink.LinkByName(n.cfg.Name)
	if err != nil {
		return err
	}
	if err := netlink.NeighSet(neighbour(bridge.Attrs().Index, six, at)); err != nil {
		return fmt.Errorf("telling the machine where %s is: %w", six, err)
	}
	return nil
}

// neighbour is one that is known for good.
func neighbour(link int, ip netip.Addr, at net.HardwareAddr) *netlink.Neigh {
	return &netlink.Neigh{LinkIndex: link, Family: netlink.FAMILY_V6, State: netlink.NUD_PERMANENT, IP: ip.AsSlice(), HardwareAddr: at}
}

// hardware is the address of the interface that has an address of the network: so each side knows the other's.
func hardware(a netip.Addr) net.HardwareAddr {
	b := a.As4()
	return append(net.HardwareAddr{0x02, 0xd7}, b[:]...)
}

// configure gives the end inside its addresses and the routes out. It needs no thread in the namespace: the socket is made there.
func (n *Network) configure(a netip.Addr, ns *os.File) error {
	h, err := netlink.NewHandleAt(netns.NsHandle(ns.Fd()), netlinkRoute)
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
	if err := h.AddrAdd(link, &netlink.Addr{IPNet: alone(a)}); err != nil {
		return fmt.Errorf("adding the address: %w", err)
	}
	six := n.sixOf(a)
	if six.IsValid() {
		if err := addIPv6(h, link, six, ns); err != nil {
			return fmt.Errorf("adding the address of IPv6: %w", err)
		}
	}
	if err := h.LinkSetUp(link); err != nil {
		return err
	}
	if err := h.RouteAdd(via(link, n.Gateway())); err != nil {
		return fmt.Errorf("adding the route: %w", err)
	}
	if !six.IsValid() {
		return nil
	}
	gateway := n.sixOf(n.Gateway())
	n.mu.Lock()
	defer n.mu.Unlock()
	err = h.NeighSet(neighbour(link.Attrs().Index, gateway, n.hardware))
	if err == nil {
		err = h.RouteAdd(via(link, gateway))
	}
	if err != nil {
		return fmt.Errorf("adding the route of IPv6: %w", err)
	}
	n.six[a] = true
	return nil
}

// addIPv6 gives the end inside its only address of IPv6, at once: nobody else can have it.
func addIPv6(h *netlink.Handle, link netlink.Link, a netip.Addr, ns *os.File) error {
	err := egress.OnThread(func() error { // docker, and some machines, switch it off in new namespaces
		if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
			return err
		}
		return os.WriteFile("/proc/sys/net/ipv6/conf/"+Inside+"/disable_ipv6", []byte("0"), 0)
	})
	if err != nil {
		return err
	}
	if err := h.LinkSetIP6AddrGenMode(link, noGeneratedAddress); err != nil {
		return err
	}
	return h.AddrAdd(link, &netlink.Addr{IPNet: alone(a), Flags: unix.IFA_F_NODAD})
}

// via is the route out over the bridge's address, which is in no network that the namespace knows.
func via(link netlink.Link, gateway netip.Addr) *netlink.Route {
	return &netlink.Route{LinkIndex: link.Attrs().Index, Gw: gateway.AsSlice(), Flags: int(netlink.FLAG_ONLINK)}
}

// alone is a network of one address.
func alone(a netip.Addr) *net.IPNet {
	return &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(a.BitLen(), a.BitLen())}
}

const (
	netlinkRoute       = 0 // NETLINK_ROUTE
	noGeneratedAddress = 1 // IN6_ADDR_GEN_MODE_NONE
)

// ipnet is the bridge's address with the whole network's mask.
func ipnet(a netip.Addr, of netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(of.Bits(), a.BitLen())}
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
		return n.forget(a)
	}
	if err := deleteLink(Device(a)); err != nil {
		return fmt.Errorf("removing the network pair %s: %w", Device(a), err)
	}
	return n.forget(a)
}

// forget gives the address back, once the machine no longer knows where it was.
func (n *Network) forget(a netip.Addr) error {
	defer n.release(a)
	if !n.HasIPv6(a) {
		return nil
	}
	bridge, err := netlink.LinkByName(n.cfg.Name)
	if err == nil {
		err = netlink.NeighDel(neighbour(bridge.Attrs().Index, n.sixOf(a), hardware(a)))
	}
	if missing := (netlink.LinkNotFoundError{}); err == nil || errors.As(err, &missing) || errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return fmt.Errorf("forgetting where %s was: %w", n.sixOf(a), err)
}

// there asks the machine's interfaces instead of our memory, so it also sees pairs of other agents.
func there(a netip.Addr) bool {
	return indexOf(Device(a)) != 0
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
