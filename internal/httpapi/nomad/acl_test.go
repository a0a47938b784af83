package nomad_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/access"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/fsm"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/httpapi/nomad"
	aclgroup "github.com/drover-project/drover/internal/httpapi/nomad/acl"
)

// applied is a log that applies what is proposed to a store at once.
type applied struct {
	mu    sync.Mutex
	fsm   *fsm.FSM
	store *store.Store
}

func (l *applied) Propose(_ context.Context, c command.Command) (uint64, any, error) {
	data, err := command.Encode(c)
	if err != nil {
		return 0, nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	index := l.store.Index() + 1
	result, err := l.fsm.Apply(index, data)
	return index, result, err
}

// counted are ids in the order in which they were made.
type counted struct {
	mu   sync.Mutex
	last int // guarded by mu
}

func (c *counted) New() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	return fmt.Sprintf("00000000-0000-4000-8000-%012d", c.last)
}

// standing is a clock that stands at fixed.
type standing struct{ clock.Wall }

func (standing) Now() time.Time { return fixed }

// accessOf is access control over a store.
func accessOf(s *store.Store) aclgroup.Config {
	return aclgroup.Config{Enabled: true, Access: access.New(access.Deps{
		Log: &applied{fsm: fsm.New(s, nil), store: s}, Store: s, Clock: standing{}, IDs: &counted{},
	})}
}

// guarded is a world in which the state's tokens count, and the secret of its bootstrap token.
func guarded(t *testing.T) (w *world, root string) {
	t.Helper()
	tokens := &later{}
	w = newWorldOf(t, tokens)
	tokens.Resolver = access.NewResolver(w.store, standing{}, "", 0)
	made, _, err := w.client.ACLTokens().Bootstrap(nil)
	require.NoError(t, err)
	return w, made.SecretID
}

// later is a resolver of a world that is not there yet.
type later struct{ *access.Resolver }

// holding is Nomad's client with a token.
func (w *world) holding(secret string) *api.Client {
	w.t.Helper()
	c, err := api.NewClient(&api.Config{Address: w.url, SecretID: secret})
	require.NoError(w.t, err)
	return c
}

// Who may do less sees what is theirs, and is told nothing of the rest.
func TestACLOfWhoMayDoLess(t *testing.T) {
	t.Parallel()
	w, secret := guarded(t)
	root := w.holding(secret)
	for _, name := range []string{"mine", "by-role", "other"} {
		_, err := root.ACLPolicies().Upsert(&api.ACLPolicy{Name: name, Rules: `node { policy = "read" }`}, nil)
		require.NoError(t, err)
	}
	role, _, err := root.ACLRoles().Create(&api.ACLRole{Name: "team", Policies: []*api.ACLRolePolicyLink{{Name: "by-role"}}}, nil)
	require.NoError(t, err)
	_, _, err = root.ACLRoles().Create(&api.ACLRole{Name: "others", Policies: []*api.ACLRolePolicyLink{{Name: "other"}}}, nil)
	require.NoError(t, err)
	made, _, err := root.ACLTokens().Create(&api.ACLToken{
		Type: "client", Policies: []string{"mine"}, Roles: []*api.ACLTokenRoleLink{{ID: role.ID}},
	}, nil)
	require.NoError(t, err)
	me := w.holding(made.SecretID)

	policies, _, err := me.ACLPolicies().List(nil)
	require.NoError(t, err)
	require.Len(t, policies, 2)
	own, _, err := me.ACLPolicies().Self(nil)
	require.NoError(t, err)
	require.Len(t, own, 2)
	roles, _, err := me.ACLRoles().List(nil)
	require.NoError(t, err)
	require.Len(t, roles, 1)
	self, _, err := me.ACLTokens().Self(nil)
	require.NoError(t, err)
	require.Equal(t, made, self)
	once, _, err := me.ACLTokens().UpsertOneTimeToken(nil)
	require.NoError(t, err)
	stranger := w.holding("")
	again, _, err := stranger.ACLTokens().ExchangeOneTimeToken(once.OneTimeSecretID, nil)
	require.NoError(t, err)
	require.Equal(t, made.SecretID, again.SecretID)
	_, _, err = stranger.ACLTokens().ExchangeOneTimeToken(once.OneTimeSecretID, nil)
	require.ErrorContains(t, err, "403 (Permission denied)", "it was used up")

	for _, c := range []*api.Client{me, stranger} {
		for what, use := range map[string]func() error{
			"a token":        func() error { _, _, err := c.ACLTokens().Info("00000000-0000-4000-8000-000000000001", nil); return err },
			"no token":       func() error { _, _, err := c.ACLTokens().Info("x", nil); return err },
			"tokens":         func() error { _, _, err := c.ACLTokens().List(nil); return err },
			"a policy":       func() error { _, _, err := c.ACLPolicies().Info("other", nil); return err },
			"no policy":      func() error { _, _, err := c.ACLPolicies().Info("x", nil); return err },
			"a role":         func() error { _, _, err := c.ACLRoles().GetByName("others", nil); return err },
			"no role":        func() error { _, _, err := c.ACLRoles().GetByName("x", nil); return err },
			"a deletion":     func() error { _, err := c.ACLTokens().Delete(made.AccessorID, nil); return err },
			"more by a role": func() error { role.Policies[0].Name = "other"; _, _, err := c.ACLRoles().Update(role, nil); return err },
			"more by a token": func() error {
				up := *made
				up.Type, up.Policies = "management", nil
				_, _, err := c.ACLTokens().Update(&up, nil)
				return err
			},
			"a new token":  func() error { _, _, err := c.ACLTokens().Create(&api.ACLToken{Type: "management"}, nil); return err },
			"a new policy": func() error { _, err := c.ACLPolicies().Upsert(&api.ACLPolicy{Name: "mine"}, nil); return err },
		} {
			require.ErrorContains(t, use(), "403 (Permission denied)", what)
		}
	}
	_, _, err = w.holding("00000000-0000-4000-8000-999999999999").ACLTokens().Self(nil)
	require.ErrorContains(t, err, "403 (ACL token not found)")
	_, _, err = stranger.ACLTokens().Self(nil)
	require.ErrorContains(t, err, "403 (Permission denied)")
	_, _, err = root.ACLTokens().Bootstrap(nil)
	require.ErrorContains(t, err, "400 (ACL bootstrap already done (reset index: 11))")
}

// A token that is deleted while a blocking query of its owner hangs gets no answer of what its owner may not know any more.
func TestADeletedTokensQueryEnds(t *testing.T) {
	t.Parallel()
	w, secret := guarded(t)
	root := w.holding(secret)
	_, err := root.ACLPolicies().Upsert(&api.ACLPolicy{Name: "p", Rules: `node { policy = "read" }`}, nil)
	require.NoError(t, err)
	made, _, err := root.ACLTokens().Create(&api.ACLToken{Type: "client", Policies: []string{"p"}}, nil)
	require.NoError(t, err)
	me := w.holding(made.SecretID)
	ended := make(chan error, 2)
	index := w.store.Index()
	go func() { // ends with the query
		_, _, err := me.ACLTokens().Self(&api.QueryOptions{WaitIndex: index, WaitTime: time.Minute})
		ended <- err
	}()
	go func() { // ends with the query
		_, _, err := me.ACLPolicies().List(&api.QueryOptions{WaitIndex: index, WaitTime: time.Minute})
		ended <- err
	}()
	_, err = root.ACLTokens().Delete(made.AccessorID, nil)
	require.NoError(t, err)
	_, err = root.ACLPolicies().Upsert(&api.ACLPolicy{Name: "p", Rules: `node { policy = "write" }`}, nil) // for which the other waits
	require.NoError(t, err)
	for range 2 {
		require.ErrorContains(t, <-ended, "403 (ACL token not found)")
	}
}

// Of two who bootstrap at once one gets the token.
func TestBootstrapTwiceAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	done := make(chan error, 8)
	for range cap(done) {
		go func() { // ends with its request
			_, _, err := w.client.ACLTokens().Bootstrap(nil)
			done <- err
		}()
	}
	got := 0
	for range cap(done) {
		if err := <-done; err == nil {
			got++
		} else {
			require.ErrorContains(t, err, "400 (ACL bootstrap already done")
		}
	}
	require.Equal(t, 1, got)
}

// Where access control is off, its routes say so in Nomad's words; where the configuration has a token, only its holder bootstraps.
func TestBootstrapIsForWhom(t *testing.T) {
	t.Parallel()
	off := newWorld(t, func(c *nomad.Config) { c.ACL.Enabled = false })
	for _, path := range []string{"PUT /v1/acl/bootstrap", "GET /v1/acl/policies", "GET /v1/acl/token/self", "DELETE /v1/acl/role/x"} {
		method, path, _ := strings.Cut(path, " ")
		rec := off.do(method, path, "")
		require.Equal(t, "400 ACL support disabled", fmt.Sprint(rec.Code, " ", rec.Body))
	}
	tokens := &later{}
	w := newWorldOf(t, tokens, func(c *nomad.Config) { c.ACL.Guarded = true })
	tokens.Resolver = access.NewResolver(w.store, standing{}, "of-the-configuration", 0)
	_, _, err := w.client.ACLTokens().Bootstrap(nil)
	require.ErrorContains(t, err, "403 (Permission denied)")
	made, _, err := w.holding("of-the-configuration").ACLTokens().BootstrapOpts("2b778dd9-f5f1-6f29-b4b4-9a5fa948757a", nil)
	require.NoError(t, err)
	require.Equal(t, "2b778dd9-f5f1-6f29-b4b4-9a5fa948757a", made.SecretID)
}

// Writes of what all regions share go to the authoritative one, local tokens stay.
func TestWhereTokensAreWritten(t *testing.T) {
	t.Parallel()
	global := map[string]bool{"g": true}
	places := map[string]func(*http.Request) (string, error){}
	for _, r := range aclgroup.Routes(nil, aclgroup.Config{
		Access: globalMethods{}, Authority: "far", IsGlobal: func(a string) bool { return global[a] },
	}) {
		if r.Where.Region != nil {
			places[r.Pattern] = r.Where.Region
		}
	}
	const create, write, remove = "PUT,POST /v1/acl/token", "PUT,POST /v1/acl/token/{accessor}", "DELETE /v1/acl/token/{accessor}"
	const login, begin, complete = "PUT,POST /v1/acl/login", "PUT,POST /v1/acl/oidc/auth-url", "PUT,POST /v1/acl/oidc/complete-auth"
	require.Len(t, places, 6)
	for _, c := range []struct{ pattern, accessor, body, want string }{
		{create, "", `{"Type": "client", "Global": true}`, "far"},
		{create, "", `{"Type": "client"}`, ""},
		{create, "", ``, ""},
		{write, "l", `{"Global": false}`, ""},
		{write, "new", `{"Global": true}`, "far"},
		{write, "g", `{}`, "far"},
		{remove, "g", ``, "far"},
		{remove, "l", ``, ""},
		{login, "", `{"AuthMethodName": "everywhere", "LoginToken": "x"}`, "far"},
		{login, "", `{"LoginToken": "x", "AuthMethodName": "here"}`, ""},
		{login, "", ``, ""},
		{begin, "", `{"AuthMethodName": "everywhere"}`, "far"},
		{complete, "", `{"AuthMethodName": "everywhere"}`, "far"},
	} {
		method, _, _ := strings.Cut(strings.SplitN(c.pattern, " ", 2)[0], ",")
		r := httptest.NewRequestWithContext(t.Context(), method, "/", strings.NewReader(c.body))
		r.SetPathValue("accessor", c.accessor)
		got, err := places[c.pattern](r)
		require.NoError(t, err)
		require.Equal(t, c.want, got, "%s %s %s", c.pattern, c.accessor, c.body)
	}
}

// globalMethods knows of one auth method whose tokens all regions know.
type globalMethods struct{ aclgroup.Access }

func (globalMethods) IsGlobalMethod(name string) bool { return name == "everywhere" }

// Auth methods and binding rules: who logs in may know which methods there are, and nobody but management more.
func TestAuthMethodsAndBindingRules(t *testing.T) {
	t.Parallel()
	w, secret := guarded(t)
	root, stranger := w.holding(secret), w.holding("")
	m := &api.ACLAuthMethod{
		Name: "ci", Type: "JWT", TokenLocality: "local", MaxTokenTTL: time.Hour, Default: true,
		Config: &api.ACLAuthMethodConfig{
			JWKSURL: "https://ci.example/keys", ClaimMappings: map[string]string{"a": "b"}, ClockSkewLeeway: time.Second,
		},
	}
	made, _, err := root.ACLAuthMethods().Create(m, nil)
	require.NoError(t, err)
	require.Equal(t, fixed.UTC(), made.CreateTime)
	list, meta, err := stranger.ACLAuthMethods().List(nil)
	require.NoError(t, err)
	require.Equal(t, []*api.ACLAuthMethodListStub{
		{Name: "ci", Type: "JWT", Default: true, CreateIndex: meta.LastIndex, ModifyIndex: meta.LastIndex},
	}, list)
	got, _, err := root.ACLAuthMethods().Get("ci", nil)
	require.NoError(t, err)
	require.Equal(t, made, got)
	require.Equal(t, time.Second, got.Config.ClockSkewLeeway)

	waited := make(chan uint64, 1)
	go func() { // ends with the answer
		_, meta, err := stranger.ACLAuthMethods().List(&api.QueryOptions{WaitIndex: meta.LastIndex, WaitTime: time.Minute})
		if err == nil {
			waited <- meta.LastIndex
		}
		close(waited)
	}()
	m.TokenLocality = "global"
	m.Config = nil
	changed, _, err := root.ACLAuthMethods().Update(m, nil)
	require.NoError(t, err)
	require.Equal(t, "https://ci.example/keys", changed.Config.JWKSURL, "what is not said stays")
	require.Equal(t, meta.LastIndex+1, <-waited, "who waits for a change is told")

	b, _, err := root.ACLBindingRules().Create(&api.ACLBindingRule{
		AuthMethod: "ci", Selector: "value.b == c", BindType: "policy", BindName: "p-${value.b}",
	}, nil)
	require.NoError(t, err)
	read, _, err := root.ACLBindingRules().Get(b.ID, nil)
	require.NoError(t, err)
	require.Equal(t, b, read)
	refusesLogins(t, root, stranger, m, b, changed.Config)
	_, err = root.ACLBindingRules().Delete(b.ID, nil)
	require.NoError(t, err)
	_, err = root.ACLAuthMethods().Delete("ci", nil)
	require.NoError(t, err)
}

// refusesLogins asks for what a stranger may not, and for what cannot be.
func refusesLogins(
	t *testing.T, root, stranger *api.Client, m *api.ACLAuthMethod, b *api.ACLBindingRule, config *api.ACLAuthMethodConfig,
) {
	t.Helper()
	for what, use := range map[string]func(c *api.Client) error{
		"method":        func(c *api.Client) error { _, _, err := c.ACLAuthMethods().Get("ci", nil); return err },
		"no method":     func(c *api.Client) error { _, _, err := c.ACLAuthMethods().Get("none", nil); return err },
		"write method":  func(c *api.Client) error { _, _, err := c.ACLAuthMethods().Create(m, nil); return err },
		"delete method": func(c *api.Client) error { _, err := c.ACLAuthMethods().Delete("ci", nil); return err },
		"rules":         func(c *api.Client) error { _, _, err := c.ACLBindingRules().List(nil); return err },
		"rule":          func(c *api.Client) error { _, _, err := c.ACLBindingRules().Get(b.ID, nil); return err },
		"write rule":    func(c *api.Client) error { _, _, err := c.ACLBindingRules().Update(b, nil); return err },
		"delete rule":   func(c *api.Client) error { _, err := c.ACLBindingRules().Delete(b.ID, nil); return err },
	} {
		require.ErrorContains(t, use(stranger), "403 (Permission denied)", what)
	}
	for want, use := range map[string]func() error{
		"404 (ACL auth method not found)":        func() error { _, _, err := root.ACLAuthMethods().Get("none", nil); return err },
		"404 (ACL auth method not found: none)":  func() error { _, err := root.ACLAuthMethods().Delete("none", nil); return err },
		"404 (ACL binding rule not found)":       func() error { _, _, err := root.ACLBindingRules().Get("none", nil); return err },
		"404 (ACL binding rule not found: none)": func() error { _, err := root.ACLBindingRules().Delete("none", nil); return err },
		"400 (default ACL auth method for type JWT already exists: ci)": func() error {
			_, _, err := root.ACLAuthMethods().Create(&api.ACLAuthMethod{
				Name: "more", Type: "JWT", TokenLocality: "local", MaxTokenTTL: time.Hour, Default: true, Config: config,
			}, nil)
			return err
		},
		"400 (ACL auth method none not found)": func() error {
			_, _, err := root.ACLBindingRules().Create(&api.ACLBindingRule{AuthMethod: "none", BindType: "management"}, nil)
			return err
		},
		"Selector: ": func() error {
			_, _, err := root.ACLBindingRules().Create(&api.ACLBindingRule{AuthMethod: "ci", Selector: "a ==", BindType: "management"}, nil)
			return err
		},
		"400 (missing auth method name)": func() error { _, _, err := stranger.ACLAuth().Login(&api.ACLLoginRequest{}, nil); return err },
	} {
		require.ErrorContains(t, use(), want)
	}
}
