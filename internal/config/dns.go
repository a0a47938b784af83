package config

import (
	"cmp"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/drover-project/drover/internal/lazyregexp"
	"github.com/drover-project/drover/internal/netguard"
	"github.com/drover-project/drover/internal/optional"
)

// DNS is a name server, which finds services as NAME.service.drover. There is none without the block.
type DNS struct {
	Enabled *bool `hcl:"enabled,optional"` // answer; default true
	Port    *int  `hcl:"port,optional"`    // where it listens, UDP and TCP; 0 picks a free one; port; default 8600
	// also answer tasks of jobs in mode bridge, at port 53 of the bridge's address, and have those that name no servers ask there;
	// default false
	Bridge    bool     `hcl:"bridge,optional"`
	Addresses []string `hcl:"addresses,optional"` // IP addresses that it listens on; default ["127.0.0.1"]
	// addresses and networks that may ask beside the machine's loopback, such as that of a bridge
	Allow  []string `hcl:"allow,optional"`
	Domain string   `hcl:"domain,optional"` // what names end with; default drover
	// name servers for all other names, IP or IP:port; [] refuses those names; default: those that the machine asks
	Recursors *[]string `hcl:"recursors,optional"`
	TTL       string    `hcl:"ttl,optional"`   // how long clients may keep answers about services; duration, whole seconds; default 0s
	Token     string    `hcl:"token,optional"` // token by which services are read where access control is on; default: what anybody may read
	Rest      hcl.Body  `hcl:",remain" json:"-"`
}

// dnsPort is where the name server listens unless dns.port says otherwise.
const dnsPort = 8600

var domainName = lazyregexp.New(`^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// Served reports whether there is a name server. d may be nil.
func (d *DNS) Served() bool { return d != nil && (d.Enabled == nil || *d.Enabled) }

// Listen returns host:port of each listener.
func (d *DNS) Listen() (list []string) {
	port := dnsPort
	if d.Port != nil {
		port = *d.Port
	}
	addresses := d.Addresses
	if len(addresses) == 0 {
		addresses = []string{"127.0.0.1"}
	}
	for _, a := range addresses {
		list = append(list, net.JoinHostPort(a, strconv.Itoa(port)))
	}
	return list
}

// ServesBridge reports whether the name server also answers tasks on the bridge. d may be nil.
func (d *DNS) ServesBridge() bool { return d.Served() && d.Bridge }

// Allowed returns who may ask.
func (d *DNS) Allowed() []netip.Prefix {
	list := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	more, _ := netguard.Networks(d.Allow) // dnsProblems has looked at them
	return append(list, more...)
}

// Zone is what names end with, without dots at its ends.
func (d *DNS) Zone() string { return cmp.Or(strings.ToLower(strings.Trim(d.Domain, ".")), "drover") }

// Forwarders returns host:port of the name servers for other names; machine are those that the machine asks.
func (d *DNS) Forwarders(machine []netip.Addr) (list []string) {
	if d.Recursors == nil {
		for _, a := range machine {
			list = append(list, net.JoinHostPort(a.String(), "53"))
		}
		return list
	}
	for _, r := range *d.Recursors {
		if a, err := netip.ParseAddr(r); err == nil {
			r = net.JoinHostPort(a.String(), "53")
		}
		list = append(list, r)
	}
	return list
}

// dnsProblems are those of the name server.
func (a *Agent) dnsProblems(p *problems) {
	d := a.DNS
	if d == nil {
		return
	}
	port := optional.Value(d.Port)
	p.check(port >= 0 && port <= 65535, "dns.port", "must be from 0 to 65535, got %d", port)
	for _, address := range d.Addresses {
		p.check(net.ParseIP(address) != nil, "dns.addresses", "%q is no IP address", address)
	}
	_, err := netguard.Networks(d.Allow)
	p.check(err == nil, "dns.allow", "%v", err)
	p.check(len(d.Zone()) < 200 && domainName().MatchString(d.Zone()), "dns.domain", "%q is no name of a domain", d.Domain)
	if d.TTL != "" {
		ttl, err := time.ParseDuration(d.TTL)
		p.check(err == nil && ttl >= 0 && ttl <= time.Hour, "dns.ttl", "must be a duration from 0s to 1h, got %q", d.TTL)
	}
	for _, r := range optional.Value(d.Recursors) {
		_, plain := netip.ParseAddr(r)
		whole, full := netip.ParseAddrPort(r)
		p.check(plain == nil || full == nil && whole.Port() != 0, "dns.recursors", "%q is neither an IP address nor IP:port", r)
		for _, own := range d.Listen() {
			p.check(r != own, "dns.recursors", "%q is this name server itself", r)
		}
	}
}
