package access

import (
	"crypto/sha256"
	"crypto/subtle"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/claims"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/policy"
	"github.com/drover-project/drover/internal/rights"
	"github.com/drover-project/drover/internal/tables"
)

// The bounds of the caches. Beyond them any entry gives way.
const (
	maxResolved = 16_384 // tokens
	maxCompiled = 1024   // sets of policies
	maxParsed   = 4096   // policies
)

// The leeway for clocks of servers that differ, and the most that can be configured.
const (
	DefaultLeeway = 5 * time.Second
	MaxLeeway     = 30 * time.Second
)

// The words of Nomad for who is refused. They do not say whether a secret was ever known.
var (
	ErrDenied   = drover.Errorf(drover.Forbidden, "Permission denied")
	ErrNoToken  = drover.Errorf(drover.Forbidden, "ACL token not found")
	ErrExpired  = drover.Errorf(drover.Forbidden, "ACL token expired")
	errBadRules = "ACL policy %q cannot be read by this server, so nothing is allowed to who has it: %w"
)

// Resolver finds who has a secret and what they may do. It is for any number of goroutines.
type Resolver struct {
	store  *store.Store
	clock  clock.Clock
	leeway time.Duration
	agent  *rights.Caller // the holder of the configuration's token; nil = there is none
	digest [sha256.Size]byte

	keys func() []jose.JSONWebKey // of identities; nil = none is taken

	now atomic.Pointer[generation]

	mu       sync.Mutex
	history  store.History                  // guarded by mu: that of which parsed and compiled are
	parsed   map[version]*policy.Rules      // guarded by mu
	compiled map[string]*rights.Rights      // guarded by mu, by the policies' versions
	verified map[[sha256.Size]byte]verified // guarded by mu, by the digest of the token
}

// version is a policy at an index: its rules never change.
type version struct {
	name  string
	index uint64
}

// generation is what was resolved while access control did not change.
type generation struct {
	history                 store.History
	tokens, policies, roles uint64

	mu       sync.RWMutex
	resolved map[[sha256.Size]byte]*rights.Caller // guarded by mu, by the digest of the secret
}

// NewResolver returns a Resolver. apiToken is the configuration's, which may do everything; "" = there is none. leeway is how long past its
// end a token is still taken, as clocks differ; 0 = DefaultLeeway, and MaxLeeway is the most that counts.
func NewResolver(s *store.Store, c clock.Clock, apiToken acl.Secret, leeway time.Duration) *Resolver {
	if leeway <= 0 {
		leeway = DefaultLeeway
	}
	r := &Resolver{
		store: s, clock: c, leeway: min(leeway, MaxLeeway), parsed: map[version]*policy.Rules{}, compiled: map[string]*rights.Rights{},
		verified: map[[sha256.Size]byte]verified{},
	}
	if apiToken != "" {
		r.digest = sha256.Sum256([]byte(apiToken))
		r.agent = &rights.Caller{Rights: rights.Management(), Token: &acl.Token{
			AccessorID: "api_token", Name: "api_token of the configuration", Type: acl.ManagementToken,
		}}
	}
	return r
}

// anonymous is the token of who shows none.
var anonymous = &acl.Token{
	AccessorID: "anonymous", Name: "Anonymous Token", Type: acl.ClientToken, Policies: []string{acl.AnonymousPolicy},
}

// Resolve returns who has the secret; "" is anonymous. The answer holds for the moment: ask again for each request. Errors: ErrNoToken,
// ErrExpired, Internal for a policy whose rules this program cannot read.
func (r *Resolver) Resolve(secret acl.Secret) (*rights.Caller, error) {
	key := sha256.Sum256([]byte(secret))
	if r.keys != nil && claims.Looks(string(secret)) {
		return r.workload(key, string(secret))
	}
	if r.agent != nil && subtle.ConstantTimeCompare(key[:], r.digest[:]) == 1 {
		return r.agent, nil
	}
	s := r.store.Snapshot()
	g := r.generation(s)
	g.mu.RLock()
	caller := g.resolved[key]
	g.mu.RUnlock()
	if caller == nil {
		var err error
		if caller, err = r.find(s, secret); err != nil {
			return nil, err
		}
		g.mu.Lock()
		put(g.resolved, maxResolved, key, caller)
		g.mu.Unlock()
	}
	if end := caller.Token.ExpirationTime; end != nil && caller.Token.Expired(r.clock.Now().Add(-r.leeway)) {
		return nil, ErrExpired
	}
	return caller, nil
}

// put adds to a bounded cache.
func put[K comparable, V any](cache map[K]V, most int, key K, v V) {
	if _, has := cache[key]; !has && len(cache) >= most {
		for some := range cache {
			delete(cache, some)
			break
		}
	}
	cache[key] = v
}

// generation returns the cache of the snapshot's state. Caches of older states are dropped: what they say may not hold any more.
func (r *Resolver) generation(s *store.Snapshot) *generation {
	tokens, policies, roles := s.TableIndex(tables.ACLTokens), s.TableIndex(tables.ACLPolicies), s.TableIndex(tables.ACLRoles)
	g := r.now.Load()
	if g != nil && g.tokens == tokens && g.policies == policies && g.roles == roles && g.history == s.History() {
		return g
	}
	next := &generation{
		history: s.History(), tokens: tokens, policies: policies, roles: roles, resolved: map[[sha256.Size]byte]*rights.Caller{},
	}
	// A slower reader of an older snapshot may put its own in the place of a newer one; then the next reader makes another one.
	r.now.CompareAndSwap(g, next)
	return next
}

// find looks for the token in the state and compiles its rights.
func (r *Resolver) find(s *store.Snapshot, secret acl.Secret) (*rights.Caller, error) {
	token := anonymous
	if secret != "" {
		token = s.ACLTokenBySecret(secret)
		if token == nil || subtle.ConstantTimeCompare([]byte(token.SecretID), []byte(secret)) != 1 {
			return nil, ErrNoToken
		}
	}
	if token.Type == acl.ManagementToken {
		return &rights.Caller{Token: token, Rights: rights.Management()}, nil
	}
	of, err := r.rights(s.History(), policiesOf(s, token))
	if err != nil {
		return nil, err
	}
	return &rights.Caller{Token: token, Rights: of}, nil
}

// policiesOf returns the policies of the token and of its roles, each once, without those that are gone.
func policiesOf(s *store.Snapshot, t *acl.Token) []*acl.Policy {
	var out []*acl.Policy
	seen := map[string]bool{}
	add := func(name string) {
		if p := s.ACLPolicy(name); p != nil && !seen[name] {
			seen[name] = true
			out = append(out, p)
		}
	}
	for _, name := range t.Policies {
		add(name)
	}
	for _, link := range t.Roles {
		if role := s.ACLRole(link.ID); role != nil {
			for _, p := range role.Policies {
				add(p.Name)
			}
		}
	}
	return out
}
