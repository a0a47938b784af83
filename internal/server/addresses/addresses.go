package addresses

import (
	"crypto/tls"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/config"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/optional"
	"github.com/drover-project/drover/internal/peer"
)

// Names are those that the machine and the configuration themselves call the agent by.
func Names(cfg *config.Agent) (names []string) {
	if name, err := os.Hostname(); err == nil {
		names = append(names, name)
	}
	if host, _, err := net.SplitHostPort(cfg.HTTPAddress()); err == nil {
		names = append(names, host)
	}
	if cfg.Advertise != nil {
		names = append(names, cfg.Advertise.HTTP)
	}
	if t := cfg.TLS; t != nil && optional.Value(t.HTTP) {
		if pair, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile); err == nil { // that it can be loaded is checked where it is served
			names = append(names, pair.Leaf.DNSNames...)
		}
	}
	return names
}

// Certified are the names for which a server makes its own certificate: first its role, then sorted this machine's names and addresses, and
// what the configuration calls it.
func Certified(cfg *config.Agent) []string {
	role := peer.ServerNames(cfg.Region)[0]
	names := []string{"localhost", "127.0.0.1", "::1"}
	addresses := []string{cfg.HTTPAddress(), cfg.RPCAddress()}
	if adv := cfg.Advertise; adv != nil {
		addresses = append(addresses, adv.HTTP, adv.RPC, adv.Serf)
	}
	if cfg.Fleet != nil {
		addresses = append(addresses, cfg.Fleet.Server)
	}
	if u, err := url.Parse(cfg.Exec.PublicURL); err == nil {
		addresses = append(addresses, u.Host)
	}
	addresses = append(addresses, Names(cfg)...)
	for _, host := range append(addresses, cfg.AllowedHosts...) {
		if h, _, err := net.SplitHostPort(host); err == nil {
			host = h
		}
		ip := net.ParseIP(strings.Trim(host, "[]"))
		switch {
		case ip != nil && ip.IsUnspecified():
			names = append(names, ofMachine()...)
		case ip != nil:
			names = append(names, ip.String())
		case host != "" && !strings.ContainsFunc(host, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune("*/:", r) }):
			names = append(names, host)
		}
	}
	slices.Sort(names)
	return append([]string{role}, slices.DeleteFunc(slices.Compact(names), func(name string) bool { return name == role })...)
}

// ofMachine are the addresses of this machine's interfaces.
func ofMachine() (out []string) {
	list, _ := net.InterfaceAddrs() // without them it is called by its names
	for _, a := range list {
		if n, ok := a.(*net.IPNet); ok {
			out = append(out, n.IP.String())
		}
	}
	return out
}

// Guard is what stands before the faces, so that no web page drives the agent. Errors: Invalid.
//
// Names in Host are checked where nothing else stops a page that had its own name resolve to this agent: in clear text without
// a token. Elsewhere the page has no token, or no certificate for its name. Agents behind proxies and load balancers have more
// names than anybody wants to list; where some are listed, they are checked there too.
func Guard(cfg *config.Agent) (*httpapi.Guard, error) {
	g := httpapi.GuardConfig{Origins: cfg.AllowedOrigins, Hosts: cfg.AllowedHosts}
	if secure, token := cfg.TLS != nil && optional.Value(cfg.TLS.HTTP), cfg.Guarded(); (secure || token) && len(g.Hosts) == 0 {
		g.Hosts = []string{"*"}
	}
	g.Hosts = append(g.Hosts, Names(cfg)...)
	if u, err := url.Parse(cfg.Exec.PublicURL); err == nil && u.Host != "" { // of a proxy, which may rewrite Host
		g.Hosts, g.Origins = append(g.Hosts, u.Host), append(slices.Clone(g.Origins), u.Scheme+"://"+u.Host)
	}
	out, err := httpapi.NewGuard(g)
	if err != nil {
		return nil, drover.Errorf(drover.Invalid, "allowed_origins: %w", err)
	}
	return out, nil
}

// Server is what new machines dial, host:port: fleet.server, else advertise.rpc, else where the listener is; "" without one.
func Server(cfg *config.Agent, rpc net.Listener) string {
	if cfg.Fleet != nil && cfg.Fleet.Server != "" {
		return cfg.Fleet.Server
	}
	if adv := cfg.Advertise; adv != nil && adv.RPC != "" {
		return WithPort(adv.RPC, rpc)
	}
	if rpc == nil {
		return ""
	}
	return rpc.Addr().String()
}

// WithPort completes an advertised address with the port on which the listener is.
func WithPort(address string, l net.Listener) string {
	if _, _, err := net.SplitHostPort(address); err == nil || l == nil {
		return address
	}
	return net.JoinHostPort(address, strconv.Itoa(int(port(l.Addr()))))
}

// port returns the port of a listener's address; 0 if it has none, such as that of a socket.
func port(addr net.Addr) uint16 {
	_, text, err := net.SplitHostPort(addr.String())
	if err != nil {
		return 0
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return 0
	}
	return uint16(n)
}

// Usable returns an address at which a listener can be called, given an address of the machine's: none can be called at
// 0.0.0.0.
func Usable(address, machine string) string {
	host, port, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err == nil && ip != nil && ip.IsUnspecified() && machine != "" {
		return net.JoinHostPort(machine, port)
	}
	return address
}
