package fingerprint

import (
	"maps"
	"net"
	"net/netip"
	"slices"

	"github.com/drover-project/drover"
)

// HostNetworks finds the machine's addresses for each named network, in the order of the names: those of its interface,
// and within its CIDR. A network that nothing belongs to is left out.
func HostNetworks(wanted map[string]*drover.HostNetworkInfo) (out []*drover.NodeNetworkResource) {
	if len(wanted) == 0 {
		return nil
	}
	interfaces, _ := net.Interfaces() // without any, nothing is found
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		for _, i := range interfaces {
			if want := wanted[name]; i.Flags&net.FlagUp != 0 && (want.Interface == "" || want.Interface == i.Name) {
				if found := addressesIn(i, want.CIDR); len(found) > 0 {
					out = append(out, hostNetwork(name, i, found, want.ReservedPorts))
				}
			}
		}
	}
	return out
}

// addressesIn lists the interface's addresses within the network; "" is all but those that are good on the link only.
func addressesIn(i net.Interface, cidr string) (out []netip.Addr) {
	within, err := netip.ParsePrefix(cidr)
	if cidr != "" && err != nil {
		return nil
	}
	addresses, _ := i.Addrs()
	for _, a := range addresses {
		p, err := netip.ParsePrefix(a.String())
		if err != nil {
			continue
		}
		if ip := p.Addr().Unmap(); cidr == "" && !ip.IsLinkLocalUnicast() || cidr != "" && within.Contains(ip) {
			out = append(out, ip)
		}
	}
	return out
}

func hostNetwork(name string, i net.Interface, found []netip.Addr, reserved string) *drover.NodeNetworkResource {
	n := &drover.NodeNetworkResource{Mode: "host", Device: i.Name, MacAddress: i.HardwareAddr.String()}
	for _, ip := range found {
		family := "ipv4"
		if ip.Is6() {
			family = "ipv6"
		}
		n.Addresses = append(n.Addresses, drover.NodeNetworkAddress{Family: family, Alias: name, Address: ip.String(), ReservedPorts: reserved})
	}
	return n
}
