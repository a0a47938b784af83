package relay

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/policy"
	"github.com/drover-project/drover/internal/rights"
)

// The bounds of what is asked and remembered.
const (
	usable      = 10 * time.Minute // it holds so long while no server answers
	askTimeout  = 5 * time.Second
	maxKnown    = 4096 // tokens
	maxAsked    = 16   // at once
	maxResponse = 16 << 10
)

// Resolver is that of an agent without server, for what the agent answers of itself. It asks a server what a token may do with
// the parts of the cluster, and remembers it for a while; where no server answers, for ten minutes. It knows nothing of
// namespaces, so that nothing is allowed there. It implements httpapi.Resolver.
type Resolver struct {
	relay  *Relay
	path   string        // of the question
	fresh  time.Duration // what a server said is not asked again
	asking chan struct{} // holds one element for each question

	mu    sync.Mutex
	known map[[sha256.Size]byte]*resolved // guarded by mu
}

// resolved is what a server said of a token.
type resolved struct {
	caller *rights.Caller
	at     time.Time
}

// Resolver returns one that asks through the relay, and of each token again when what it knows is not fresh any more.
func (l *Relay) Resolver(fresh time.Duration) *Resolver {
	return &Resolver{
		relay: l, path: "/v1/rights", fresh: fresh, asking: make(chan struct{}, maxAsked), known: map[[sha256.Size]byte]*resolved{},
	}
}

// Known is a Resolver that refuses tokens which are nobody's also where servers let in everybody.
func (l *Relay) Known(fresh time.Duration) *Resolver {
	r := l.Resolver(fresh)
	r.path += "?known=true"
	return r
}

// Resolve implements httpapi.Resolver. Errors: the server's; Unavailable where none answers and the token was not seen lately; RateLimited.
func (r *Resolver) Resolve(secret acl.Secret) (*rights.Caller, error) {
	key, now := sha256.Sum256([]byte(secret)), r.relay.clock.Now()
	r.mu.Lock()
	known := r.known[key]
	r.mu.Unlock()
	if known != nil && now.Sub(known.at) < r.fresh {
		return known.caller, nil
	}
	select {
	case r.asking <- struct{}{}:
		defer func() { <-r.asking }()
	default:
		return nil, drover.Errorf(drover.RateLimited, "too many tokens are asked about at once (limit %d)", maxAsked)
	}
	caller, err := r.ask(secret)
	switch {
	case err == nil:
		r.remember(key, &resolved{caller, now})
	case drover.CodeOf(err) != drover.Unavailable:
		r.remember(key, nil)
	case known != nil && now.Sub(known.at) < usable:
		return known.caller, nil
	}
	return caller, err
}

// remember keeps what is known of a token, or forgets it. Of too many some one gives way.
func (r *Resolver) remember(key [sha256.Size]byte, known *resolved) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known == nil {
		delete(r.known, key)
		return
	}
	for some := range r.known {
		if len(r.known) < maxKnown {
			break
		}
		delete(r.known, some)
	}
	r.known[key] = known
}

// ask asks a server. Errors: Forbidden, Unauthorized; Unavailable where none says anything.
func (r *Resolver) ask(secret acl.Secret) (*rights.Caller, error) {
	q, err := http.NewRequest(http.MethodGet, "http://"+theServers.Address+r.path, nil) // whose context has no end
	if err != nil {
		return nil, fmt.Errorf("asking a server about a token: %w", err)
	}
	ctx, cancel := r.relay.clock.WithTimeout(q.Context(), askTimeout)
	defer cancel()
	q = q.WithContext(ctx)
	if !httpguts.ValidHeaderFieldValue(string(secret)) {
		return nil, httpapi.ErrDenied // no server has such a token; it came as a password, say
	}
	if secret != "" {
		q.Header.Set("X-Nomad-Token", string(secret))
	}
	res, err := r.relay.transport.RoundTrip(q)
	if err != nil {
		return nil, drover.Errorf(drover.Unavailable, "asking a server about a token: %w", err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, maxResponse))
	if err != nil {
		return nil, drover.Errorf(drover.Unavailable, "asking a server about a token: %w", err)
	}
	switch res.StatusCode {
	case http.StatusOK:
		var l acl.Levels
		if err := json.Unmarshal(text, &l); err != nil {
			return nil, drover.Errorf(drover.Unavailable, "a server's answer about a token: %w", err)
		}
		return callerOf(l)
	case http.StatusUnauthorized, http.StatusForbidden:
		var problem struct{ Message string }
		_ = json.Unmarshal(text, &problem) // what is none says nothing
		return nil, drover.Errorf(drover.Forbidden, "%s", cmp.Or(problem.Message, httpapi.ErrDenied.Error()))
	}
	return nil, drover.Errorf(drover.Unavailable, "a server answered %s when asked about a token", res.Status)
}

// callerOf makes a caller of what a server said.
func callerOf(l acl.Levels) (*rights.Caller, error) {
	token := &acl.Token{AccessorID: l.AccessorID, Name: l.Name, Type: acl.ClientToken}
	if l.Management {
		token.Type = acl.ManagementToken
		return &rights.Caller{Token: token, Rights: rights.Management()}, nil
	}
	var rules strings.Builder
	for part, level := range map[policy.Part]string{
		policy.Agent: l.Agent, policy.Node: l.Node, policy.Operator: l.Operator, policy.Quota: l.Quota, policy.Plugin: l.Plugin,
		policy.Fleet: l.Fleet,
	} {
		if level != "" {
			fmt.Fprintf(&rules, "%s { policy = %q }\n", part, level)
		}
	}
	if rules.Len() == 0 {
		return &rights.Caller{Token: token}, nil
	}
	p, err := policy.Parse(rules.String())
	if err != nil {
		return nil, drover.Errorf(drover.Unavailable, "a server's answer about a token: %w", err)
	}
	return &rights.Caller{Token: token, Rights: rights.Compile(p)}, nil
}
