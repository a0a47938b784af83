package idp

import (
	"encoding/json"
	"net/http"
	"net/url"
	"testing"

	"github.com/hashicorp/cap/oidc"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/acl"
)

func writeJSON(w http.ResponseWriter, v any) error {
	w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(w).Encode(v)
}

const callback = "http://localhost:4649/oidc/callback"

// flow is a provider that speaks OpenID Connect over TLS, and a method for it.
type flow struct {
	t *testing.T
	*Providers
	clock    *at
	provider *oidc.TestProvider
	method   *acl.AuthMethod
	browser  *http.Client
}

func newFlow(t *testing.T) *flow {
	p, c, _ := setup(loopback)
	provider := oidc.StartTestProvider(t)
	provider.SetClientCreds("drover", "secret")
	provider.SetAllowedRedirectURIs([]string{callback})
	provider.SetExpectedAuthCode("code")
	provider.SetExpectedAuthNonce("nonce")
	provider.SetSupportedScopes("openid", "profile")
	provider.SetNowFunc(c.Now)
	provider.SetCustomClaims(map[string]any{"groups": []string{"dev"}})
	provider.SetUserInfoReply(map[string]any{"sub": "alice@example.com", "email": "alice@example.com", "iss": "https://evil"})
	browser := provider.HTTPClient()
	browser.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &flow{t: t, Providers: p, clock: c, provider: provider, browser: browser, method: &acl.AuthMethod{
		Name: "sso", Type: acl.MethodOIDC, Config: &acl.AuthMethodConfig{
			OIDCDiscoveryURL: provider.Addr(), OIDCClientID: "drover", OIDCClientSecret: "secret", DiscoveryCaPem: []string{provider.CACert()},
			SigningAlgs: []string{"ES256"}, AllowedRedirectURIs: []string{callback},
		},
	}}
}

// visit begins a login and goes to the provider as a browser does.
func (f *flow) visit() acl.CompleteAuthRequest {
	f.t.Helper()
	to, err := f.AuthURL(f.t.Context(), f.method, acl.AuthURLRequest{RedirectURI: callback, ClientNonce: "nonce"})
	require.NoError(f.t, err)
	u, err := url.Parse(to)
	require.NoError(f.t, err)
	if f.method.Config.OIDCEnablePKCE {
		require.Equal(f.t, "S256", u.Query().Get("code_challenge_method"))
		v, err := oidc.NewCodeVerifier(oidc.WithVerifier(f.verifier(u.Query().Get("state"))))
		require.NoError(f.t, err)
		require.Equal(f.t, v.Challenge(), u.Query().Get("code_challenge"))
		f.provider.SetPKCEVerifier(v)
	}
	res, err := f.browser.Get(to)
	require.NoError(f.t, err)
	require.NoError(f.t, res.Body.Close())
	f.browser.CloseIdleConnections()
	back, err := res.Location()
	require.NoError(f.t, err)
	return acl.CompleteAuthRequest{
		ClientNonce: "nonce", RedirectURI: callback, State: back.Query().Get("state"), Code: acl.Secret(back.Query().Get("code")),
	}
}

func (f *flow) refused(r acl.CompleteAuthRequest, code drover.Code, text string) {
	f.t.Helper()
	_, err := f.Complete(f.t.Context(), f.method, r)
	require.ErrorContains(f.t, err, text)
	require.Equal(f.t, code, drover.CodeOf(err), "%v", err)
	require.NotContains(f.t, err.Error(), "secret")
}

// TestFlow: a person goes to the provider and comes back with a code, which the server exchanges.
func TestFlow(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*acl.AuthMethodConfig){
		"plain": func(*acl.AuthMethodConfig) {},
		"pkce":  func(c *acl.AuthMethodConfig) { c.OIDCEnablePKCE = true },
		"scope": func(c *acl.AuthMethodConfig) { c.OIDCScopes = []string{"openid"} },
	} {
		f := newFlow(t)
		change(f.method.Config)
		r := f.visit()
		claims, err := f.Complete(t.Context(), f.method, r)
		require.NoError(t, err, name)
		require.Equal(t, "alice@example.com", claims["email"], "of the information about the person")
		require.Equal(t, []any{"dev"}, claims["groups"])
		require.Equal(t, f.provider.Addr(), claims["iss"], "of the token")
		f.refused(r, drover.Forbidden, "completed already")

		f.method.Config.OIDCDisableUserInfo = true
		claims, err = f.Complete(t.Context(), f.method, f.visit())
		require.NoError(t, err, name)
		require.NotContains(t, claims, "email")
	}
}

// TestStolenLogins: what another login, process, client or provider was given is worth nothing.
func TestStolenLogins(t *testing.T) {
	t.Parallel()
	f := newFlow(t)
	const begin = "begin it again"
	for what, change := range map[string]func(*acl.CompleteAuthRequest){
		"another nonce":    func(r *acl.CompleteAuthRequest) { r.ClientNonce = "other" },
		"another redirect": func(r *acl.CompleteAuthRequest) { r.RedirectURI = "http://localhost:1/oidc/callback" },
		"another state":    func(r *acl.CompleteAuthRequest) { r.State = newFlow(t).visit().State },
		"no state of ours": func(r *acl.CompleteAuthRequest) { r.State = "x" },
	} {
		r := f.visit()
		change(&r)
		_, err := f.Complete(t.Context(), f.method, r)
		require.ErrorContains(t, err, begin, what)
		require.Equal(t, drover.Forbidden, drover.CodeOf(err))
	}
	r := f.visit()
	f.clock.add(loginTime + 1e9)
	f.refused(r, drover.Forbidden, begin)
	r = f.visit()
	f.clock.add(-2 * loginTime)
	f.refused(r, drover.Forbidden, begin)
	f.clock.add(2 * loginTime)

	r = f.visit()
	r.Code = "guessed"
	f.refused(r, drover.Forbidden, "refuses the code")
	r = f.visit()
	r.Iss = "https://evil"
	f.refused(r, drover.Forbidden, "did not come back from")
	r = f.visit()
	f.provider.SetExpectedAuthNonce("of another login")
	f.refused(r, drover.Forbidden, "nonce")
	f.provider.SetExpectedAuthNonce("nonce")
	r = f.visit()
	f.provider.SetClientCreds("another-client", "secret")
	f.refused(r, drover.Forbidden, "for another client")
	f.provider.SetClientCreds("drover", "secret")
	r = f.visit()
	f.provider.SetOmitIDTokens(true)
	f.refused(r, drover.Forbidden, "there is none")
	f.provider.SetOmitIDTokens(false)
	r = f.visit()
	f.provider.SetUserInfoReply(map[string]any{"sub": "bob"})
	f.refused(r, drover.Forbidden, "another person")
	f.provider.SetUserInfoReply(map[string]any{"sub": "alice@example.com"})
	f.method.Config.BoundAudiences = []string{"more"}
	f.refused(f.visit(), drover.Forbidden, "BoundAudiences")
	f.method.Config.BoundAudiences = nil
	f.provider.SetExpectedExpiry(-1e9 * 60)
	f.refused(f.visit(), drover.Forbidden, "expired")
	f.refused(acl.CompleteAuthRequest{}, drover.Invalid, "missing ")

	other := *f.method
	config := *f.method.Config
	config.OIDCScopes = []string{"openid"}
	other.Config = &config
	r = f.visit()
	_, err := f.Complete(t.Context(), &other, r)
	require.ErrorContains(t, err, begin, "the method was changed")
}

func TestWhereLoginsReturn(t *testing.T) {
	t.Parallel()
	f := newFlow(t)
	for to, want := range map[string]bool{
		callback:                                   true,
		"http://localhost:9/oidc/callback":         true,
		"http://127.0.0.1:4649/oidc/callback":      false,
		"http://localhost:4649/else":               false,
		"https://localhost:4649/oidc/callback":     false,
		"http://evil.example/oidc/callback":        false,
		"http://localhost:4649@evil/oidc/callback": false,
		"javascript:alert(1)":                      false,
		callback + "?x=y":                          false,
	} {
		_, err := f.AuthURL(t.Context(), f.method, acl.AuthURLRequest{RedirectURI: to, ClientNonce: "n"})
		require.Equal(t, want, err == nil, "%s: %v", to, err)
		if err != nil {
			require.Equal(t, drover.Invalid, drover.CodeOf(err))
		}
	}
	require.True(t, mayReturn(nil, "http://127.0.0.1:1/oidc/callback"))
	require.False(t, mayReturn(nil, "https://ui.example/"))
	require.True(t, mayReturn([]string{"https://ui.example/ui/settings/tokens"}, "https://ui.example/ui/settings/tokens"))
	for _, r := range []acl.AuthURLRequest{
		{RedirectURI: callback}, {ClientNonce: "n"}, {RedirectURI: callback, ClientNonce: string(make([]byte, 600))},
	} {
		_, err := f.AuthURL(t.Context(), f.method, r)
		require.Equal(t, drover.Invalid, drover.CodeOf(err))
	}
}

func TestUsedStatesAreBounded(t *testing.T) {
	t.Parallel()
	var r ring
	for i := range maxUsed + 10 {
		require.True(t, r.add(string(rune('a'+i%26))+url.QueryEscape(string(rune(i)))+"x"+string(rune(i/26))))
	}
	require.Len(t, r.list, maxUsed)
	require.Len(t, r.has, maxUsed)
}
