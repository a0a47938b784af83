package config

import (
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/drover-project/drover/internal/optional"
)

// Limits bound clients.
type Limits struct {
	// connections of one client address and, over HTTP/2, its requests under way; 0 is no limit; default: no limit for
	// connections at work, 100 for those that wait
	HTTPMaxConns *int `hcl:"http_max_conns_per_client,optional"`
	// how long a client of the faces may take for its handshake of TLS; duration; default 10s
	HTTPSHandshake string `hcl:"https_handshake_timeout,optional"`
	// how long who dials the port of nodes and servers may take to say who it is; duration; default 10s
	RPCHandshake string `hcl:"rpc_handshake_timeout,optional"`
	// connections of one address to that port, of nodes and of other servers; 0 is no limit; default 0, as many nodes may have one address
	RPCMaxConns *int `hcl:"rpc_max_conns_per_client,optional"`
	// largest body of a request, but where files are taken; bytes; default 10485760
	MaxBodyBytes int64 `hcl:"max_body_bytes,optional"`
	// requests a second that a token may send to this agent, on average; more get 429; 0 is no limit; default 0
	TokenRate float64 `hcl:"http_requests_per_token,optional"`
	// requests that a token may send at once; default twice http_requests_per_token
	TokenBurst int `hcl:"http_burst_per_token,optional"`
	// requests a second that a client address may send to this agent, or an IPv6 network of 64 bits; 0 is no limit; default 0
	AddressRate float64 `hcl:"http_requests_per_address,optional"`
	// requests that a client address may send at once; default twice http_requests_per_address
	AddressBurst int      `hcl:"http_burst_per_address,optional"`
	Rest         hcl.Body `hcl:",remain" json:"-"`
}

// handshakeTimeout is how long who dials may take to prove itself.
const handshakeTimeout = 10 * time.Second

// Handshakes are how long who dials the faces, and the port of nodes and servers, may take to prove itself.
func (l *Limits) Handshakes() (faces, links time.Duration) {
	if l == nil {
		return handshakeTimeout, handshakeTimeout
	}
	return Duration(l.HTTPSHandshake, handshakeTimeout), Duration(l.RPCHandshake, handshakeTimeout)
}

// LinksOf is how many connections one address may have to the port of nodes and servers; 0 is no limit.
func (l *Limits) LinksOf() int {
	if l == nil {
		return 0
	}
	return optional.Value(l.RPCMaxConns)
}

// connectionProblems are those of the limits of connections.
func (l *Limits) connectionProblems(p *problems) {
	p.check(optional.Value(l.HTTPMaxConns) >= 0, "limits.http_max_conns_per_client", "must not be negative; 0 is no limit")
	p.check(l.LinksOf() >= 0, "limits.rpc_max_conns_per_client", "must not be negative; 0 is no limit")
	faces, links := l.Handshakes()
	for key, d := range map[string]time.Duration{"https": faces, "rpc": links} {
		p.check(d >= 100*time.Millisecond && d <= time.Minute, "limits."+key+"_handshake_timeout",
			"must be from 100ms to 1m, got %s: without an end, who dials and says nothing holds connections for ever", d)
	}
}

// rateProblems are those of the limits of requests.
func (l *Limits) rateProblems(p *problems) {
	for _, r := range []struct {
		whose string
		rate  float64
		burst int
	}{{"token", l.TokenRate, l.TokenBurst}, {"address", l.AddressRate, l.AddressBurst}} {
		perSecond, burst := "limits.http_requests_per_"+r.whose, "limits.http_burst_per_"+r.whose
		p.check(r.rate >= 0 && r.rate <= 1e6, perSecond, "must be from 0 to 1000000 a second, got %g", r.rate)
		p.check(r.burst >= 0 && r.burst <= 1e6, burst, "must be from 0 to 1000000, got %d", r.burst)
		p.check(r.burst == 0 || r.rate > 0, burst, "bounds nothing without http_requests_per_%s", r.whose)
	}
}
