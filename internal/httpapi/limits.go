package httpapi

import (
	"fmt"
	"net/http"
	"net/netip"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi/throttle"
	"github.com/drover-project/drover/internal/rights"
)

// Limits are how many requests a token and an address may send to this agent. Routes about its health are exempt.
type Limits struct {
	Tokens    *throttle.Limiter[string]     // by accessor; nil: no limit
	Addresses *throttle.Limiter[netip.Addr] // nil: no limit. All of an IPv6 network of 64 bits is one
	// Refused, if set, is told of each refused request by what: "token" or "address".
	Refused func(by string)
}

// tooOften is a refusal that says when to come back.
type tooOften struct {
	error
	wait time.Duration
}

func (t *tooOften) Unwrap() error { return t.error }

func (l *Limits) refuse(by, who, key string, wait time.Duration) error {
	if l.Refused != nil {
		l.Refused(by)
	}
	err := drover.Errorf(drover.RateLimited, "too many requests of %s (limits.%s): try again in %s", who, key, max(wait, time.Millisecond).
		Round(time.Millisecond))
	return &tooOften{err, wait}
}

// RetryAfter is the header's value for an error: whole seconds, 1 at least.
func RetryAfter(wait time.Duration) string {
	return fmt.Sprint(max(1, int64((wait+time.Second-1)/time.Second)))
}

// AddressOf is the address that a request is counted by: all of an IPv6 network of 64 bits is one. false: it came over no network.
func AddressOf(r *http.Request) (address netip.Addr, ok bool) {
	from, _ := netip.ParseAddrPort(r.RemoteAddr)
	address = from.Addr().Unmap().WithZone("")
	if address.Is6() {
		prefix, _ := address.Prefix(64)
		address = prefix.Addr()
	}
	return address, address.IsValid()
}

// limitAddress refuses a request of an address that sends too many. Another agent, which sends its clients' requests, counted them
// itself.
func (e *endpoint) limitAddress(r *http.Request) error {
	if e.exempt || e.Limits == nil || e.Limits.Addresses == nil {
		return nil
	}
	if _, relayed := HopOf(r.Context()); relayed {
		return nil
	}
	address, ok := AddressOf(r)
	if !ok { // no network's: what is in this process
		return nil
	}
	if wait, ok := e.Limits.Addresses.Admit(address, e.Clock.Now()); !ok {
		return e.Limits.refuse("address", "the address "+address.String(), "http_requests_per_address", wait)
	}
	return nil
}

// limitCaller refuses a request of a token that sends too many. Who shows no token is bounded by the address alone.
func (e *endpoint) limitCaller(c *rights.Caller) error {
	if e.exempt || e.Limits == nil || e.Limits.Tokens == nil || c.Token == nil {
		return nil
	}
	switch c.Token.AccessorID {
	case "", "anonymous", everybody.Token.AccessorID:
		return nil
	}
	if wait, ok := e.Limits.Tokens.Admit(c.Token.AccessorID, e.Clock.Now()); !ok {
		return e.Limits.refuse("token", fmt.Sprintf("the token %q", c.Token.Name), "http_requests_per_token", wait)
	}
	return nil
}
