package server

import (
	"crypto/tls"
	"net"
	"net/url"
	"os"
	"slices"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/optional"
)

// pageGuard is what stands before the faces, so that no web page drives the agent.
//
// Names in Host are checked where nothing else stops a page that had its own name resolve to this agent: in clear text without
// a token. Elsewhere the page has no token, or no certificate for its name. Agents behind proxies and load balancers have more
// names than anybody wants to list; where some are listed, they are checked there too.
func (a *Agent) pageGuard() (*httpapi.Guard, error) {
	g := httpapi.GuardConfig{Origins: a.cfg.AllowedOrigins, Hosts: a.cfg.AllowedHosts}
	if secure, token := a.cfg.TLS != nil && optional.Value(a.cfg.TLS.HTTP), a.cfg.Guarded(); (secure || token) && len(g.Hosts) == 0 {
		g.Hosts = []string{"*"}
	}
	g.Hosts = append(g.Hosts, a.names()...)
	if u, err := url.Parse(a.cfg.Exec.PublicURL); err == nil && u.Host != "" { // of a proxy, which may rewrite Host
		g.Hosts, g.Origins = append(g.Hosts, u.Host), append(slices.Clone(g.Origins), u.Scheme+"://"+u.Host)
	}
	out, err := httpapi.NewGuard(g)
	if err != nil {
		return nil, drover.Errorf(drover.Invalid, "allowed_origins: %w", err)
	}
	return out, nil
}

// names are those that the machine and the configuration themselves call the agent by.
func (a *Agent) names() (names []string) {
	if name, err := os.Hostname(); err == nil {
		names = append(names, name)
	}
	if host, _, err := net.SplitHostPort(a.cfg.HTTPAddress()); err == nil {
		names = append(names, host)
	}
	if a.cfg.Advertise != nil {
		names = append(names, a.cfg.Advertise.HTTP)
	}
	if t := a.cfg.TLS; t != nil && optional.Value(t.HTTP) {
		if pair, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile); err == nil { // that it can be loaded is checked where it is served
			names = append(names, pair.Leaf.DNSNames...)
		}
	}
	return names
}
