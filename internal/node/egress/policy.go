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
	return prefixes("10.0.0.0/8", "100.64.0.0/10", "172.16.0.0/12", "192.168.0.0/16")
}

// special are the networks that are not the Internet: the machine's own and its neighbours', metadata services, tests',
// multicast and reserved ones. metadata are those of clouds that no wider network of a policy opens.
var (
	special  = distinct(netguard.NotPublic()) // a constant
	metadata = distinct(netguard.Metadata())  // a constant
)

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

// distinct returns the IPv4 networks of a list without those that lie in others, sorted: nft takes no overlaps.
func distinct(list []netip.Prefix) (out []netip.Prefix) {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b netip.Prefix) int { return a.Bits() - b.Bits() })
	for _, p := range list {
		if p = p.Masked(); p.Addr().Is4() && !slices.ContainsFunc(out, func(o netip.Prefix) bool { return o.Overlaps(p) }) {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b netip.Prefix) int { return a.Addr().Compare(b.Addr()) })
	return out
}

// reach is what rules say of networks.
type reach struct {
	resolvers, metadata, special []netip.Prefix
	exact, exactJobs             []netip.Prefix // of the policy those within metadata: who names them means them
	allow, allowJobs             []netip.Prefix
}

func (p Policy) reach() reach {
	return reach{
		resolvers: p.resolvers(), metadata: metadata, special: special,
		exact: within(p.Allow, metadata), exactJobs: within(p.AllowJobs, metadata),
		allow: distinct(p.Allow), allowJobs: distinct(p.AllowJobs),
	}
}

// within are the networks of a list that lie in others.
func within(list, of []netip.Prefix) []netip.Prefix {
	return distinct(slices.DeleteFunc(slices.Clone(list), func(p netip.Prefix) bool {
		return !slices.ContainsFunc(of, func(o netip.Prefix) bool { return o.Overlaps(p) && o.Bits() <= p.Bits() })
	}))
}

// resolvers are the name servers' IPv4 addresses as networks of one address each.
func (p Policy) resolvers() (list []netip.Prefix) {
	find := p.Resolvers
	if find == nil {
		find = Resolvers
	}
	for _, a := range find() {
		list = append(list, netip.PrefixFrom(a, a.BitLen()))
	}
	return distinct(list)
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
