package netguard

import (
	"net/netip"
	"slices"
)

// nat64 is the prefix of translators between IPv6 and IPv4 (RFC 6052).
var nat64 = netip.MustParsePrefix("64:ff9b::/96") // a constant

// unicast are the addresses of IPv6 that are given to networks; all beyond is special.
var unicast = netip.MustParsePrefix("2000::/3") // a constant

const metadata = "a cloud's metadata service"

// kinds are what is not public: all ranges of IANA's registries of special-purpose addresses but the private ones, and what was
// in them once. The addresses at which clouds answer their machines belong to them, too, where they lie elsewhere.
var kinds = map[string][]netip.Prefix{ // constants
	"an address of this host": prefixes("0.0.0.0/8", "::/128"),
	"a loopback address":      prefixes("127.0.0.0/8", "::1/128"),
	"a link-local address":    prefixes("169.254.0.0/16", "fe80::/10", "fec0::/10"),
	"a multicast address":     prefixes("224.0.0.0/4", "ff00::/8"),
	metadata: prefixes(
		"168.63.129.16/32", "100.100.100.200/32", "192.0.0.192/32", "fd00:ec2::/32", "fd20:ce::/32", "fd00:42::42/128"),
	"in a carrier's shared network": prefixes("100.64.0.0/10"),
	"an address of a special purpose": prefixes(
		"192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.175.48.0/24",
		"198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
		"64:ff9b:1::/48", "100::/64", "100:0:0:1::/64", "2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20", "5f00::/16",
	),
}

// privates are for networks of one's own (RFC 1918, RFC 4193).
var privates = prefixes("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7") // constants

func prefixes(texts ...string) (list []netip.Prefix) {
	for _, t := range texts {
		list = append(list, netip.MustParsePrefix(t))
	}
	return list
}

// NotPublic lists all networks that are not the Internet, also the private ones, in no order and with some inside of others.
func NotPublic() []netip.Prefix {
	list := slices.Clone(privates)
	for _, of := range kinds {
		list = append(list, of...)
	}
	return list
}

// Metadata lists where clouds answer their machines beside the link-local addresses, some inside of shared and private networks.
func Metadata() []netip.Prefix { return slices.Clone(kinds[metadata]) }

// special says what a plain address is, "" if nothing special.
func special(ip netip.Addr) string {
	if !ip.IsValid() {
		return "no address"
	}
	best, why := -1, ""
	for kind, list := range kinds {
		for _, p := range list {
			if p.Contains(ip) && p.Bits() > best { // the narrowest says most
				best, why = p.Bits(), kind
			}
		}
	}
	if why == "" && ip.Is6() && !unicast.Contains(ip) && !private(ip) {
		return "an address that is given to nobody"
	}
	return why
}

func private(ip netip.Addr) bool {
	for _, p := range privates {
		if p.Contains(ip) {
			return true
		}
	}
	return false
}
