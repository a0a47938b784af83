package access

import (
	"context"
	"slices"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/binding"
	"github.com/drover-project/drover/internal/control/store"
)

// Providers asks identity providers who somebody is; *idp.Providers satisfies it. Methods are valid ones. Errors: Forbidden for who proves
// nothing, with the reason; Unavailable for a provider that does not answer.
type Providers interface {
	// VerifyJWT returns the claims of a signed token that the method takes.
	VerifyJWT(ctx context.Context, m *acl.AuthMethod, token acl.Secret) (map[string]any, error)
	// AuthURL is where a person proves who they are. Errors: also Invalid for an address that the method does not allow.
	AuthURL(ctx context.Context, m *acl.AuthMethod, r acl.AuthURLRequest) (string, error)
	// Complete returns the claims of who came back from there.
	Complete(ctx context.Context, m *acl.AuthMethod, r acl.CompleteAuthRequest) (map[string]any, error)
}

// maxLogins is how many logins a server has under way at once: each may ask a provider, and nobody who logs in has shown a token yet.
const maxLogins = 32

// ErrTooManyLogins is the refusal of one more.
var ErrTooManyLogins = drover.Errorf(drover.RateLimited, "too many logins at once: try again in a second")

// loginTimeout bounds one login with all that its provider is asked.
const loginTimeout = 30 * time.Second

// enter counts a login and bounds it; leave is called when it is over. Errors: ErrTooManyLogins.
func (a *Access) enter(ctx context.Context) (bounded context.Context, leave func(), err error) {
	select {
	case a.logins <- struct{}{}:
	default:
		return nil, nil, ErrTooManyLogins
	}
	bounded, cancel := a.deps.Clock.WithTimeout(ctx, loginTimeout)
	return bounded, func() {
		cancel()
		<-a.logins
	}, nil
}

// method is the auth method of a login, with its secrets. Errors: Invalid; Unavailable if they cannot be decrypted.
func (a *Access) method(ctx context.Context, name, kind string) (*acl.AuthMethod, error) {
	if name == "" {
		return nil, drover.Errorf(drover.Invalid, "missing auth method name")
	}
	m := a.deps.Store.Snapshot().AuthMethod(name)
	if m == nil {
		return nil, drover.Errorf(drover.Invalid, "auth-method %q not found", name)
	}
	if m.Type != kind {
		return nil, drover.Errorf(drover.Invalid, "auth-method %q is of type %s, and this login needs one of type %s", name, m.Type, kind)
	}
	if a.deps.Providers == nil {
		return nil, drover.Errorf(drover.NotImplemented, "this server asks no identity providers")
	}
	return a.Open(ctx, m)
}

// Login gives a token to who shows one of an identity provider. Errors: Invalid, also if no binding rule gives anything; Forbidden,
// Unavailable, ErrTooManyLogins.
func (a *Access) Login(ctx context.Context, r acl.LoginRequest) (*acl.Token, uint64, error) {
	m, err := a.method(ctx, r.AuthMethodName, acl.MethodJWT)
	if err != nil {
		return nil, 0, err
	}
	if r.LoginToken == "" {
		return nil, 0, drover.Errorf(drover.Invalid, "missing login token")
	}
	ctx, leave, err := a.enter(ctx)
	if err != nil {
		return nil, 0, err
	}
	defer leave()
	claims, err := a.deps.Providers.VerifyJWT(ctx, m, r.LoginToken)
	if err != nil {
		return nil, 0, err
	}
	return a.admit(ctx, m, claims)
}

// AuthURL returns where a person goes to log in. Errors: Invalid, Unavailable, ErrTooManyLogins.
func (a *Access) AuthURL(ctx context.Context, r acl.AuthURLRequest) (string, error) {
	m, err := a.method(ctx, r.AuthMethodName, acl.MethodOIDC)
	if err != nil {
		return "", err
	}
	ctx, leave, err := a.enter(ctx)
	if err != nil {
		return "", err
	}
	defer leave()
	return a.deps.Providers.AuthURL(ctx, m, r)
}

// CompleteAuth gives a token to who came back from there. Errors: as Login's.
func (a *Access) CompleteAuth(ctx context.Context, r acl.CompleteAuthRequest) (*acl.Token, uint64, error) {
	m, err := a.method(ctx, r.AuthMethodName, acl.MethodOIDC)
	if err != nil {
		return nil, 0, err
	}
	ctx, leave, err := a.enter(ctx)
	if err != nil {
		return nil, 0, err
	}
	defer leave()
	claims, err := a.deps.Providers.Complete(ctx, m, r)
	if err != nil {
		return nil, 0, err
	}
	return a.admit(ctx, m, claims)
}

// IsGlobalMethod reports whether logins with the method give tokens that all regions know.
func (a *Access) IsGlobalMethod(name string) bool {
	m := a.deps.Store.Snapshot().AuthMethod(name)
	return m != nil && m.TokenLocality == acl.GlobalTokens
}

// admit makes the token of who has the claims. The state is asked again: the provider may have taken its time.
func (a *Access) admit(ctx context.Context, m *acl.AuthMethod, all map[string]any) (*acl.Token, uint64, error) {
	s := a.deps.Store.Snapshot()
	if now := s.AuthMethod(m.Name); now == nil || now.ModifyIndex != m.ModifyIndex {
		return nil, 0, drover.Errorf(drover.Invalid, "auth-method %q was changed meanwhile: log in again", m.Name)
	}
	claims := binding.Map(m.Config, all)
	given := bound(s, binding.Bind(slices.Collect(s.BindingRulesOf(m.Name)), claims))
	if m.Config.VerboseLogging && a.deps.Logger != nil {
		a.deps.Logger.Debug("a login", "auth_method", m.Name, "claims", claims, "management", given.Management, "roles", given.Roles,
			"policies", given.Policies)
	}
	t := &acl.Token{
		AccessorID: a.deps.IDs.New(), SecretID: acl.Secret(a.deps.IDs.New()), Name: binding.TokenName(m, claims), Type: acl.ClientToken,
		Global: m.TokenLocality == acl.GlobalTokens, ExpirationTTL: min(m.MaxTokenTTL, acl.TTL(a.deps.TTL.Max)),
	}
	switch {
	case given.Management:
		t.Type = acl.ManagementToken
	case len(given.Roles)+len(given.Policies) == 0:
		return nil, 0, drover.Errorf(drover.Invalid, "no role or policy bindings matched")
	default:
		t.Policies = given.Policies
		for _, roleID := range given.Roles {
			t.Roles = append(t.Roles, &acl.TokenRole{ID: roleID})
		}
	}
	return a.storeNew(ctx, t)
}

// bound leaves of what rules give the policies and roles that there are, and roles by their ids.
func bound(s *store.Snapshot, g binding.Given) binding.Given {
	out := binding.Given{Management: g.Management}
	for _, name := range g.Policies {
		if s.ACLPolicy(name) != nil {
			out.Policies = append(out.Policies, name)
		}
	}
	for _, name := range g.Roles {
		role := s.ACLRoleByName(name)
		if role == nil {
			role = s.ACLRole(name)
		}
		if role != nil && !slices.Contains(out.Roles, role.ID) {
			out.Roles = append(out.Roles, role.ID)
		}
	}
	return out
}
