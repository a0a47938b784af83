package egress

import (
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/netguard"
)

// Policy is a node's. The zero value opens nothing special and bounds nothing.
type Policy struct {
	// Allow are networks that warm runners, whose code is unknown, may reach although they are special.
	Allow []netip.Prefix
	// AllowJobs are the same for tasks of jobs.
	AllowJobs []netip.Prefix
	// Bounds for each guest, by its address; 0 = none.
	Connections    int // open at a time
	ConnectionRate int // new ones a second; as many at once as may be open
	PacketRate     int // a second
	// Resolvers are the name servers that guests are told of; nil: Resolvers.
	Resolvers func() []netip.Addr
}

// The bounds that hold unless the configuration says otherwise: more than compilers, package managers and tests take, and
// less than would be felt by others. (Packets, as the machine counts them here, are up to 64 kB each.)
const (
	DefaultConnections    = 512
	DefaultConnectionRate = 200
	DefaultPacketRate     = 50000
)

// DefaultAllowJobs are what jobs written for Nomad expect to reach from a group's bridge: databases and other services in
// private networks. What no service has, such as a cloud's metadata, stays closed.
func DefaultAllowJobs() []netip.Prefix {
	return prefixes("10.0.0.0/8", "100.64.0.0/10", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7")
}

// special are the networks that are not the Internet: the machine's own and its neighbours', metadata services, tests',
// multicast and reserved ones. metadata are those of clouds that no wider network of a policy opens.
var (
	special  = distinct(append(netguard.NotPublic(), ungiven...)) // a constant
	metadata = distinct(netguard.Metadata())                      // a constant
)

// ungiven is all of IPv6 but 2000::/3, from which networks are given.
var ungiven = prefixes("::/3", "4000::/2", "8000::/1") // a constant

// prefixes parses constants, and panics on one that is wrong.
func prefixes(texts ...string) (list []netip.Prefix) {
	for _, t := range texts {
		list = append(list, netip.MustParsePrefix(t))
	}
	return list
}

// Default is the policy of a node whose configuration says nothing.
func Default() Policy {
	return Policy{
		AllowJobs: DefaultAllowJobs(), Connections: DefaultConnections, ConnectionRate: DefaultConnectionRate, PacketRate: DefaultPacketRate,
	}
}

// distinct returns the networks of a list without those that lie in others, sorted: nft takes no overlaps.
func distinct(list []netip.Prefix) (out []netip.Prefix) {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b netip.Prefix) int { return a.Bits() - b.Bits() })
	for _, p := range list {
		if p = p.Masked(); !slices.ContainsFunc(out, func(o netip.Prefix) bool { return o.Overlaps(p) }) {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b netip.Prefix) int { return a.Addr().Compare(b.Addr()) })
	return out
}

// reach is what rules say of networks, of one family.
type reach struct {
	resolvers, metadata, special []netip.Prefix
	exact, exactJobs             []netip.Prefix // of the policy those within metadata: who names them means them
	allow, allowJobs             []netip.Prefix
	machine                      []netip.Prefix // its own addresses, where no rule of it sees what comes in
}

func (p Policy) reach(f family) reach {
	return reach{
		resolvers: f.of(p.resolvers()), metadata: f.of(metadata), special: f.of(special),
		exact: f.of(within(p.Allow, metadata)), exactJobs: f.of(within(p.AllowJobs, metadata)),
		allow: f.of(distinct(p.Allow)), allowJobs: f.of(distinct(p.AllowJobs)),
	}
}

// family of addresses, as nft names it.
type family string

const (
	ip4 family = "ip"
	ip6 family = "ip6"
)

// of returns the family's networks of a list.
func (f family) of(list []netip.Prefix) (out []netip.Prefix) {
	for _, p := range list {
		if p.Addr().Is4() == (f == ip4) {
			out = append(out, p)
		}
	}
	return out
}

// within are the networks of a list that lie in others.
func within(list, of []netip.Prefix) []netip.Prefix {
	return distinct(slices.DeleteFunc(slices.Clone(list), func(p netip.Prefix) bool {
		return !slices.ContainsFunc(of, func(o netip.Prefix) bool { return o.Overlaps(p) && o.Bits() <= p.Bits() })
	}))
}

// resolvers are the name servers' addresses as networks of one address each.
func (p Policy) resolvers() (list []netip.Prefix) {
	find := p.Resolvers
	if find == nil {
		find = Resolvers
	}
	return distinct(each(find()))
}

// each returns addresses as networks of one address each.
func each(addresses []netip.Addr) (list []netip.Prefix) {
	for _, a := range addresses {
		a = a.WithZone("").Unmap()
		list = append(list, netip.PrefixFrom(a, a.BitLen()))
	}
	return list
}

// ResolverFile is the machine's list of name servers, or that behind it if the machine asks itself: what guests are shown.
func ResolverFile() string {
	const own, upstream = "/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"
	data, err := os.ReadFile(own)
	if err != nil || !strings.Contains(string(data), "nameserver 127.") {
		return own
	}
	if _, err := os.Stat(upstream); err != nil {
		return own
	}
	return upstream
}

// Resolvers are the name servers in ResolverFile.
func Resolvers() (list []netip.Addr) {
	data, err := os.ReadFile(ResolverFile())
	if err != nil {
		return nil // then guests are told of none
	}
	for line := range strings.Lines(string(data)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "nameserver" {
			if a, err := netip.ParseAddr(f[1]); err == nil && !a.IsLoopback() {
				list = append(list, a)
			}
		}
	}
	return list
}
