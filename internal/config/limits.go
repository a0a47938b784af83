package config

import "github.com/hashicorp/hcl/v2"

// Limits bound clients.
type Limits struct {
	// connections of one client address and, over HTTP/2, its requests under way; 0 is no limit; default: no limit for
	// connections at work, 100 for those that wait
	HTTPMaxConns *int `hcl:"http_max_conns_per_client,optional"`
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
