package acl

import (
	"context"
	"errors"
	"net/http"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/nomad/answer"
	"github.com/drover-project/drover/internal/rights"
)

// Tokens makes, reads and deletes tokens. Writes return the index at which they were committed.
type Tokens interface {
	Bootstrap(ctx context.Context, secret acl.Secret) (*acl.Token, uint64, error)
	CreateToken(ctx context.Context, who *rights.Caller, t *acl.Token) (*acl.Token, uint64, error)
	UpdateToken(ctx context.Context, who *rights.Caller, t *acl.Token) (*acl.Token, uint64, error)
	DeleteTokens(ctx context.Context, who *rights.Caller, accessors ...string) (uint64, error)
	Token(who *rights.Caller, accessor string) (*acl.Token, error)
	// Tokens are those of the prefix that the caller may know of, or the global ones of them.
	Tokens(who *rights.Caller, prefix string, global bool) []*acl.TokenStub
	Self(who *rights.Caller) (*acl.Token, error)
}

// OneTimeTokens makes tokens that can be exchanged once for their maker's.
type OneTimeTokens interface {
	MakeOneTime(ctx context.Context, who *rights.Caller) (*acl.OneTimeToken, uint64, error)
	Exchange(ctx context.Context, secret acl.Secret) (*acl.Token, uint64, error)
}

// Policies writes, reads and deletes policies. Lists have what the caller may know of.
type Policies interface {
	PutPolicy(ctx context.Context, who *rights.Caller, p *acl.Policy) (uint64, error)
	DeletePolicies(ctx context.Context, who *rights.Caller, names ...string) (uint64, error)
	Policy(who *rights.Caller, name string) (*acl.Policy, error)
	Policies(who *rights.Caller, prefix string) []*acl.PolicyStub
	OwnPolicies(who *rights.Caller) []*acl.Policy
}

// Roles writes, reads and deletes roles. Lists have what the caller may know of.
type Roles interface {
	PutRole(ctx context.Context, who *rights.Caller, r *acl.Role) (*acl.Role, uint64, error)
	DeleteRoles(ctx context.Context, who *rights.Caller, ids ...string) (uint64, error)
	Role(who *rights.Caller, roleID string) (*acl.Role, error)
	RoleByName(who *rights.Caller, name string) (*acl.Role, error)
	Roles(who *rights.Caller, prefix string) []*acl.RoleStub
}

// AuthMethods writes, reads and deletes ways to log in.
type AuthMethods interface {
	PutAuthMethod(ctx context.Context, who *rights.Caller, m *acl.AuthMethod) (*acl.AuthMethod, uint64, error)
	DeleteAuthMethods(ctx context.Context, who *rights.Caller, names ...string) (uint64, error)
	AuthMethod(who *rights.Caller, name string) (*acl.AuthMethod, error)
	// AuthMethods are for everybody.
	AuthMethods(prefix string) []*acl.AuthMethodStub
}

// BindingRules writes, reads and deletes what logins give.
type BindingRules interface {
	PutBindingRule(ctx context.Context, who *rights.Caller, b *acl.BindingRule) (*acl.BindingRule, uint64, error)
	DeleteBindingRules(ctx context.Context, who *rights.Caller, ids ...string) (uint64, error)
	BindingRule(who *rights.Caller, ruleID string) (*acl.BindingRule, error)
	BindingRules(who *rights.Caller, prefix string) []*acl.BindingRuleStub
}

// Logins gives tokens to who proves to an identity provider who they are.
type Logins interface {
	Login(ctx context.Context, r acl.LoginRequest) (*acl.Token, uint64, error)
	AuthURL(ctx context.Context, r acl.AuthURLRequest) (string, error)
	CompleteAuth(ctx context.Context, r acl.CompleteAuthRequest) (*acl.Token, uint64, error)
	// IsGlobalMethod reports whether logins with the method give tokens that all regions know.
	IsGlobalMethod(name string) bool
}

// Access has every use case; control/access implements it. Errors carry drover codes and Nomad's texts ("ACL token not found").
type Access interface {
	Tokens
	OneTimeTokens
	Policies
	Roles
	AuthMethods
	BindingRules
	Logins
}

// Config is what the group needs beside the cluster.
type Config struct {
	Access Access
	// Enabled says that access control is on: else all routes are refused.
	Enabled bool
	// Guarded says that the configuration has a token whose holder may do everything: nobody else bootstraps then.
	Guarded bool
	// Authority is the region that policies, roles and global tokens are written in; "" = each region has its own.
	Authority string
	// IsGlobal reports whether there is a token with the accessor that all regions know.
	IsGlobal func(accessor string) bool
}

// face answers the group's requests.
type face struct {
	*answer.Cluster
	Config
}

// Routes lists the group's routes.
func Routes(c *answer.Cluster, cfg Config) []httpapi.Route {
	f := &face{c, cfg}
	first, mine := httpapi.Nothing, httpapi.Filtered("what the caller has; all to management")
	if cfg.Guarded {
		first = httpapi.Management
	}
	self := httpapi.Filtered("what is the caller's own")
	tokens := httpapi.Leader.Of(f.region)
	routes := []httpapi.Route{
		{Pattern: "PUT,POST /v1/acl/bootstrap", Where: httpapi.Authority, Need: first, Handle: f.bootstrap},

		{Pattern: "GET /v1/acl/policies", Where: httpapi.Reads, Need: mine, Handle: f.listPolicies},
		{Pattern: "GET /v1/acl/policy/self", Where: httpapi.Reads, Need: self, Handle: f.ownPolicies},
		{Pattern: "GET /v1/acl/policy/{name}", Where: httpapi.Reads, Need: mine, Handle: f.readPolicy},
		{Pattern: "PUT,POST /v1/acl/policy/{name}", Where: httpapi.Authority, Need: httpapi.Management, Handle: f.writePolicy},
		{Pattern: "DELETE /v1/acl/policy/{name}", Where: httpapi.Authority, Need: httpapi.Management, Handle: f.deletePolicy},

		{Pattern: "GET /v1/acl/tokens", Where: httpapi.Reads, Need: httpapi.Management, Handle: f.listTokens},
		{Pattern: "PUT,POST /v1/acl/token", Where: tokens, Need: httpapi.Management, Handle: f.writeToken},
		{Pattern: "GET /v1/acl/token/self", Where: httpapi.Reads, Need: self, Handle: f.ownToken},
		{Pattern: "PUT,POST /v1/acl/token/onetime", Where: httpapi.Leader, Need: self, Handle: f.makeOneTime},
		{Pattern: "PUT,POST /v1/acl/token/onetime/exchange", Where: httpapi.Leader, Need: httpapi.Nothing, Handle: f.exchange},
		{Pattern: "GET /v1/acl/token/{accessor}", Where: httpapi.Reads, Need: mine, Handle: f.readToken},
		{Pattern: "PUT,POST /v1/acl/token/{accessor}", Where: tokens, Need: httpapi.Management, Handle: f.writeToken},
		{Pattern: "DELETE /v1/acl/token/{accessor}", Where: tokens, Need: httpapi.Management, Handle: f.deleteToken},

		{Pattern: "GET /v1/acl/roles", Where: httpapi.Reads, Need: mine, Handle: f.listRoles},
		{Pattern: "PUT,POST /v1/acl/role", Where: httpapi.Authority, Need: httpapi.Management, Handle: f.writeRole},
		{Pattern: "GET /v1/acl/role/{id}", Where: httpapi.Reads, Need: mine, Handle: f.readRole},
		{Pattern: "PUT,POST /v1/acl/role/{id}", Where: httpapi.Authority, Need: httpapi.Management, Handle: f.writeRole},
		{Pattern: "DELETE /v1/acl/role/{id}", Where: httpapi.Authority, Need: httpapi.Management, Handle: f.deleteRole},
		{Pattern: "GET /v1/acl/role/name/{name}", Where: httpapi.Reads, Need: mine, Handle: f.readRoleByName},
	}
	routes = append(routes, f.loginRoutes()...)
	if !cfg.Enabled {
		for i := range routes {
			routes[i].Handle = disabled
		}
	}
	return routes
}

// disabled is the answer where access control is off, in Nomad's words.
func disabled(http.ResponseWriter, *http.Request) error {
	err := errors.New("ACL support disabled")
	return &httpapi.StatusError{Status: http.StatusBadRequest, Err: err}
}

// region is where a write of a token goes: one that all regions know is the authoritative region's.
func (f *face) region(r *http.Request) (string, error) {
	if accessor := r.PathValue("accessor"); accessor != "" && f.IsGlobal(accessor) {
		return f.Authority, nil
	}
	if r.Method == http.MethodDelete {
		return "", nil
	}
	global, err := httpapi.BodyKey("Global")(r)
	if err != nil || global != "true" {
		return "", err
	}
	return f.Authority, nil
}

// bootstrap answers PUT /v1/acl/bootstrap; the body may be missing.
func (f *face) bootstrap(w http.ResponseWriter, r *http.Request) error {
	var b acl.BootstrapRequest
	if err := httpapi.DecodeOptionalJSON(r, &b); err != nil {
		return err
	}
	t, index, err := f.Access.Bootstrap(r.Context(), b.BootstrapSecret)
	if err != nil {
		return err
	}
	return f.written(w, r, index, t)
}

// written answers a write that was committed at the index.
func (f *face) written(w http.ResponseWriter, r *http.Request, index uint64, v any) error {
	return f.Written(w, r, drover.Outcome{Index: index}, v)
}

// single answers with the object that read finds for the caller, blocking if asked until its index, that of its last change, is another.
// Who waited is asked again who they are; where there is no object the index is the table's.
func single[T any](
	f *face, w http.ResponseWriter, r *http.Request, on answer.Source, read func(who *rights.Caller) (*T, error), index func(*T) uint64,
) error {
	q, err := f.ParseQuery(r)
	if err != nil {
		return err
	}
	ctx := r.Context()
	switch _, err := read(httpapi.CallerOf(ctx)); {
	case drover.CodeOf(err) == drover.NotFound:
		on.Key = "" // watches on rows that never come would be kept for ever
	case err != nil:
		return err
	}
	_, at, err := f.Await(ctx, q, []answer.Source{on}, func(s answer.Snapshot) uint64 {
		v, err := read(httpapi.CallerOf(ctx))
		if err != nil {
			return s.TableIndex(on.Table)
		}
		return index(v)
	})
	if err != nil {
		return err
	}
	found, err := read(httpapi.CallerOf(ctx))
	f.SetIndex(w, at)
	if err != nil {
		return err
	}
	return httpapi.WriteJSON(w, r, http.StatusOK, found)
}
