package netguard

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"syscall"
	"time"

	"github.com/drover-project/drover"
)

// Guard says which addresses may be reached. Special ones never are, unless Allow names them: loopback, link-local,
// metadata, multicast, reserved and translated addresses, and those of the machine itself.
type Guard struct {
	What    string         // is refused: "the artifact's address"
	Key     string         // of the configuration that allows more
	Private bool           // private networks (10.0.0.0/8, fc00::/7, …) are allowed too
	Allow   []netip.Prefix // allowed whatever they are
	// Own are the machine's addresses. Default: those of its interfaces at that moment.
	Own func() []netip.Addr
}

// Networks reads networks (10.0.0.0/8) and addresses of a configuration. Errors: Invalid.
func Networks(texts []string) (list []netip.Prefix, err error) {
	for _, text := range texts {
		p, err := netip.ParsePrefix(text)
		if ip, addrErr := netip.ParseAddr(text); addrErr == nil && ip.Zone() == "" {
			p, err = netip.PrefixFrom(ip.Unmap(), ip.Unmap().BitLen()), nil
		}
		if err != nil {
			return nil, drover.Errorf(drover.Invalid, "%q is neither a network such as 10.0.0.0/8 nor an address", text)
		}
		list = append(list, p.Masked())
	}
	return list, nil
}

// Check judges an address. Errors: Forbidden, with the key that would allow it.
func (g *Guard) Check(ip netip.Addr) error {
	ip = plain(ip)
	for _, p := range g.Allow {
		if p.Contains(ip) {
			return nil
		}
	}
	why := special(ip)
	if why == "" && !g.Private && private(ip) {
		why = "private"
	}
	if why == "" && g.own(ip) {
		why = "this machine's own"
	}
	if why == "" {
		return nil
	}
	return drover.Errorf(drover.Forbidden, "%s %s is %s, and %s does not name it", g.What, ip, why, g.Key)
}

// plain returns the address that packets to ip reach in the end, as far as ip says so. IPv4 addresses also stand in IPv6 ones,
// as they are or for a translator (NAT64) beside us.
func plain(ip netip.Addr) netip.Addr {
	ip = ip.WithZone("").Unmap()
	if nat64.Contains(ip) {
		all := ip.As16()
		return netip.AddrFrom4([4]byte(all[12:]))
	}
	return ip
}

func (g *Guard) own(ip netip.Addr) bool {
	list := ownAddresses
	if g.Own != nil {
		list = g.Own
	}
	for _, a := range list() {
		if plain(a) == ip {
			return true
		}
	}
	return false
}

func ownAddresses() (list []netip.Addr) {
	all, _ := net.InterfaceAddrs() // without them there is nothing to compare with
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok {
			if ip, ok := netip.AddrFromSlice(n.IP); ok {
				list = append(list, ip.Unmap())
			}
		}
	}
	return list
}

// CheckHost judges the host of a URL, as far as it is an address; what a name stands for is seen when it is dialled.
// Errors: Forbidden.
func (g *Guard) CheckHost(host string) error {
	if name := strings.TrimSuffix(strings.ToLower(host), "."); name == "localhost" || strings.HasSuffix(name, ".localhost") {
		host = "127.0.0.1"
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return nil //nolint:nilerr // a name
	}
	return g.Check(ip)
}

// Dialer returns one that refuses what the guard does.
func (g *Guard) Dialer(timeout time.Duration) *net.Dialer {
	return &net.Dialer{Timeout: timeout, ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return drover.Errorf(drover.Forbidden, "%s %q: %w", g.What, address, err)
		}
		return g.Check(to.Addr())
	}}
}

// maxRedirects is how many a client follows.
const maxRedirects = 10

// Client returns one that follows redirects, but takes none of a request's headers, which may be credentials, along to
// another host. Proxies that the environment names are the operator's way out: they are dialled wherever they are, and
// resolve names themselves; addresses in URLs are judged all the same.
func (g *Guard) Client(timeout time.Duration) *http.Client { return g.ClientWith(timeout, nil) }

// ClientWith is Client with a configuration of TLS; nil is Go's own.
func (g *Guard) ClientWith(timeout time.Duration, c *tls.Config) *http.Client {
	return &http.Client{
		Timeout: timeout, CheckRedirect: withoutCredentials,
		Transport: guarded{g, &http.Transport{
			Proxy: http.ProxyFromEnvironment, DialContext: g.dial, DisableKeepAlives: true, TLSHandshakeTimeout: time.Minute, TLSClientConfig: c,
		}},
	}
}

func (g *Guard) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if isProxy(address) {
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	return g.Dialer(time.Minute).DialContext(ctx, network, address)
}

// isProxy reports whether the environment names that host and port as a proxy. Requests to it are judged by their URL.
func isProxy(address string) bool {
	for _, scheme := range []string{"http", "https"} {
		req, err := http.NewRequest(http.MethodGet, scheme+"://drover.invalid/", nil) // it is not sent
		if err != nil {
			continue
		}
		proxy, err := http.ProxyFromEnvironment(req)
		if err != nil || proxy == nil {
			continue
		}
		port := proxy.Port()
		if port == "" {
			port = map[string]string{"http": "80", "https": "443", "socks5": "1080", "socks5h": "1080"}[proxy.Scheme]
		}
		if net.JoinHostPort(proxy.Hostname(), port) == address {
			return true
		}
	}
	return false
}

// guarded judges the host of every request, those of redirects too.
type guarded struct {
	guard *Guard
	next  http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t guarded) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := t.guard.CheckHost(r.URL.Hostname()); err != nil {
		return nil, err
	}
	return t.next.RoundTrip(r)
}

func withoutCredentials(next *http.Request, before []*http.Request) error {
	if len(before) >= maxRedirects {
		return fmt.Errorf("stopped after %d redirects", maxRedirects)
	}
	first := before[0].URL
	if next.URL.Host != first.Host || first.Scheme == "https" && next.URL.Scheme != "https" {
		next.Header = http.Header{}
	}
	return nil
}
