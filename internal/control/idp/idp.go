package idp

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"log/slog"
	"net/netip"
	"net/url"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/hashicorp/cap/jwt"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/telemetry"
)

// Config bounds what providers are asked.
type Config struct {
	Allow   []netip.Prefix // special networks where providers may be, beside public and private ones
	Timeout time.Duration  // of one outgoing request; default 10 s
}

// Deps is what Providers work with.
type Deps struct {
	Clock clock.Clock
	Log   *slog.Logger
}

// Providers asks the identity providers of auth methods. It is for any number of goroutines.
type Providers struct {
	cfg  Config
	deps Deps
	key  [sha256.Size]byte // signs states; of this process
	used ring              // states that were shown

	mu     sync.Mutex
	known  map[digest]*known // guarded by mu
	failed telemetry.Seldom
}

// digest is that of a method's configuration: methods that are changed, or restored, are others.
type digest [sha256.Size]byte

// known is what was learned of a provider.
type known struct {
	once      sync.Mutex // held while it is learned, so that a flood asks once; bounded by Config.Timeout
	until     time.Time  // guarded by once
	err       error      // guarded by once: why it was not learned
	validator *jwt.Validator
	provider  *oidc.Provider
	meta      metadata
}

// The bounds of what is remembered, and for how long. Keys are fetched anew whenever one is missing.
const (
	maxKnown    = 256
	rememberFor = time.Hour
)

// New returns Providers. Nothing is asked yet.
func New(cfg Config, deps Deps) *Providers {
	cfg.Timeout = cmp.Or(cfg.Timeout, 10*time.Second)
	p := &Providers{cfg: cfg, deps: deps, known: map[digest]*known{}}
	_, _ = rand.Read(p.key[:]) // never fails, says crypto/rand
	return p
}

// digestOf identifies the method's configuration.
func digestOf(m *acl.AuthMethod) digest {
	text, err := json.Marshal(m.Config)
	if err != nil { // it is plain data
		return digest{}
	}
	return sha256.Sum256(append(text, m.Type+m.Name...))
}

// of returns what is known of the method's provider, after learn filled it in if it is new or old.
func (p *Providers) of(m *acl.AuthMethod, learn func(*known) error) (*known, error) {
	key := digestOf(m)
	p.mu.Lock()
	k := p.known[key]
	if k == nil {
		if len(p.known) >= maxKnown {
			for some := range p.known {
				delete(p.known, some)
				break
			}
		}
		k = &known{}
		p.known[key] = k
	}
	p.mu.Unlock()
	k.once.Lock()
	defer k.once.Unlock()
	if now := p.deps.Clock.Now(); now.After(k.until) || k.until.Sub(now) > rememberFor {
		k.err = learn(k)
		k.until = p.deps.Clock.Now().Add(rememberFor)
		if k.err != nil { // who waited for it meanwhile need not wait as long once more
			k.until = p.deps.Clock.Now().Add(fetchEvery)
		}
	}
	return k, k.err
}

// unreachable is what is said of a provider that cannot be asked. The reason goes to the log: whoever tries to log in need not learn
// what this server reaches.
func (p *Providers) unreachable(m *acl.AuthMethod, what string, err error) error {
	p.failed.Warn(p.deps.Log, p.deps.Clock.Now(), "asking an identity provider", "auth_method", m.Name, "for", what, "error", err)
	return drover.Errorf(drover.Unavailable, "auth-method %q: the identity provider cannot be asked for %s now: the server's log says why",
		m.Name, what)
}

// isNetwork reports whether a request failed, and not what it was for.
func isNetwork(err error) bool {
	var u *url.Error
	return (errors.As(err, &u) || errors.Is(err, context.DeadlineExceeded)) && !errors.Is(err, errSoon)
}

// refused is what is said of who proves nothing.
func refused(format string, args ...any) error {
	return drover.Errorf(drover.Forbidden, format, args...)
}
