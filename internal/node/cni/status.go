package cni

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"unicode"

	"github.com/containernetworking/cni/pkg/types"
	current "github.com/containernetworking/cni/pkg/types/100"
	"github.com/containernetworking/cni/pkg/utils"

	"github.com/drover-project/drover/network"
)

// status reads what the plugins gave: the first interface in the namespace that has an address, and its first address of each family.
// Plugins of old name no interfaces. What they say ends up in files and on terminals, so odd characters are an error.
func status(result types.Result) (*network.Status, error) {
	r, err := current.NewResultFromResult(result)
	if err != nil {
		return nil, fmt.Errorf("reading the result: %w", err)
	}
	s := &network.Status{}
	for _, ip := range r.IPs {
		if ip == nil {
			continue
		}
		address, ok := netip.AddrFromSlice(ip.Address.IP)
		name := interfaceOf(r, ip)
		if !ok || name == "" || s.InterfaceName != "" && s.InterfaceName != name {
			continue
		}
		s.InterfaceName = name
		if address = address.Unmap(); address.Is4() && s.Address == "" {
			s.Address = address.String()
		} else if address.Is6() && s.AddressIPv6 == "" {
			s.AddressIPv6 = address.String()
		}
	}
	if s.InterfaceName == "" {
		return nil, fmt.Errorf("the plugins gave no address in the namespace")
	}
	if fault := utils.ValidateInterfaceName(s.InterfaceName); fault != nil || !printable(s.InterfaceName) {
		return nil, fmt.Errorf("the plugins call the interface %q, which is no name of one", s.InterfaceName)
	}
	if s.DNS, err = resolver(r.DNS); err != nil {
		return nil, err
	}
	return s, nil
}

// interfaceOf is the interface in the namespace that has the address; "" if it is none of the namespace.
func interfaceOf(r *current.Result, ip *current.IPConfig) string {
	if ip.Interface == nil {
		return Inside
	}
	if i := *ip.Interface; i >= 0 && i < len(r.Interfaces) && r.Interfaces[i] != nil && r.Interfaces[i].Sandbox != "" {
		return r.Interfaces[i].Name
	}
	return ""
}

// resolver is what the plugins say of name servers; nil if it is nothing.
func resolver(d types.DNS) (*network.DNSConfig, error) {
	if len(d.Nameservers) == 0 {
		return nil, nil // a valid answer
	}
	out := &network.DNSConfig{Servers: d.Nameservers, Searches: d.Search, Options: d.Options}
	if len(out.Searches) == 0 && d.Domain != "" {
		out.Searches = []string{d.Domain}
	}
	for _, word := range slices.Concat(out.Servers, out.Searches, out.Options) {
		if !printable(word) || strings.ContainsFunc(word, unicode.IsSpace) {
			return nil, fmt.Errorf("the plugins' DNS has %q, which is no word", word)
		}
	}
	for _, server := range out.Servers {
		if _, err := netip.ParseAddr(server); err != nil {
			return nil, fmt.Errorf("the plugins' name server %q is no address", server)
		}
	}
	return out, nil
}

func printable(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
}
