package idp

import (
	"cmp"
	"context"
	"crypto/subtle"
	"maps"
	"net/url"
	"slices"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/acl"
)

// issuedLeeway is how far in the future a provider's clock may be.
const issuedLeeway = time.Minute

// maxNonce bounds what clients send, in bytes.
const maxNonce = 512

// discover learns the configuration of the method's provider.
func (p *Providers) discover(ctx context.Context, m *acl.AuthMethod) (*known, error) {
	return p.of(m, func(k *known) error {
		with, err := p.client(ctx, m.Config.DiscoveryCaPem)
		if err != nil {
			return err
		}
		provider, err := oidc.NewProvider(with, m.Config.OIDCDiscoveryURL)
		if err != nil {
			return p.unreachable(m, "its configuration", err)
		}
		if err := provider.Claims(&k.meta); err != nil {
			return p.unreachable(m, "its configuration", err)
		}
		k.provider = provider
		return nil
	})
}

// flow is the method's OAuth 2 configuration.
func (k *known) flow(m *acl.AuthMethod, redirect string) *oauth2.Config {
	c := m.Config
	endpoint := k.provider.Endpoint()
	basic := slices.Contains(k.meta.AuthMethods, "client_secret_basic")
	switch post := slices.Contains(k.meta.AuthMethods, "client_secret_post"); {
	case c.OIDCClientAssertion != nil, post && !basic:
		endpoint.AuthStyle = oauth2.AuthStyleInParams
	case basic:
		endpoint.AuthStyle = oauth2.AuthStyleInHeader
	}
	scopes := []string{oidc.ScopeOpenID}
	for _, s := range c.OIDCScopes {
		if !slices.Contains(scopes, s) {
			scopes = append(scopes, s)
		}
	}
	out := &oauth2.Config{ClientID: c.OIDCClientID, RedirectURL: redirect, Endpoint: endpoint, Scopes: scopes}
	if c.OIDCClientAssertion == nil {
		out.ClientSecret = string(c.OIDCClientSecret)
	}
	return out
}

// AuthURL returns where a person goes to log in. Errors: Invalid for what is missing or not allowed, Unavailable.
func (p *Providers) AuthURL(ctx context.Context, m *acl.AuthMethod, r acl.AuthURLRequest) (string, error) {
	switch {
	case r.RedirectURI == "":
		return "", drover.Errorf(drover.Invalid, "missing redirect URI")
	case r.ClientNonce == "":
		return "", drover.Errorf(drover.Invalid, "missing client nonce")
	case len(r.ClientNonce) > maxNonce:
		return "", drover.Errorf(drover.Invalid, "the client nonce is longer than %d bytes", maxNonce)
	case !mayReturn(m.Config.AllowedRedirectURIs, r.RedirectURI):
		return "", drover.Errorf(drover.Invalid, "the redirect URI %q is none of the method's AllowedRedirectURIs", r.RedirectURI)
	}
	k, err := p.discover(ctx, m)
	if err != nil {
		return "", err
	}
	state := p.newState(login{digestOf(m), r.RedirectURI, r.ClientNonce})
	options := []oauth2.AuthCodeOption{oidc.Nonce(r.ClientNonce)}
	if m.Config.OIDCEnablePKCE {
		options = append(options, oauth2.S256ChallengeOption(p.verifier(state)))
	}
	return k.flow(m, r.RedirectURI).AuthCodeURL(state, options...), nil
}

// mayReturn reports whether a login may lead to the address: one of the allowed ones, of which loopback ones have any port, as programs
// listen where they can (RFC 8252). Where none is named, only loopback addresses are.
func mayReturn(allowed []string, to string) bool {
	u, err := url.Parse(to)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.Fragment != "" {
		return false
	}
	if len(allowed) == 0 {
		return isLoopback(u)
	}
	for _, text := range allowed {
		if text == to {
			return true
		}
		a, err := url.Parse(text)
		if err == nil && isLoopback(a) && isLoopback(u) && a.Scheme == u.Scheme && a.Hostname() == u.Hostname() && a.Path == u.Path &&
			a.RawQuery == u.RawQuery {
			return true
		}
	}
	return false
}

func isLoopback(u *url.URL) bool {
	host := u.Hostname()
	return host == "localhost" || host == "127.0.0.1" || host == "::1"
}

// Complete exchanges the provider's code for its claims about who logged in. Errors: Invalid for what is missing, Forbidden, Unavailable.
func (p *Providers) Complete(ctx context.Context, m *acl.AuthMethod, r acl.CompleteAuthRequest) (map[string]any, error) {
	for what, s := range map[string]string{
		"client nonce": r.ClientNonce, "state": r.State, "code": string(r.Code), "redirect URI": r.RedirectURI,
	} {
		if s == "" {
			return nil, drover.Errorf(drover.Invalid, "missing %s", what)
		}
	}
	if err := p.useState(r.State, login{digestOf(m), r.RedirectURI, r.ClientNonce}); err != nil {
		return nil, err
	}
	k, err := p.discover(ctx, m)
	if err != nil {
		return nil, err
	}
	if r.Iss == "" && k.meta.SendsIssuer || r.Iss != "" && r.Iss != k.meta.Issuer {
		return nil, refused("the login did not come back from %q, but from %q", k.meta.Issuer, cmp.Or(r.Iss, "nobody"))
	}
	with, err := p.client(ctx, m.Config.DiscoveryCaPem)
	if err != nil {
		return nil, err
	}
	with, cancel := bothEnd(with, ctx)
	defer cancel()
	options, err := p.proof(m, r.State)
	if err != nil {
		return nil, err
	}
	token, err := k.flow(m, r.RedirectURI).Exchange(with, string(r.Code), options...)
	switch {
	case err != nil && isNetwork(err):
		return nil, p.unreachable(m, "the person's token", err)
	case err != nil:
		p.failed.Warn(p.deps.Log, p.deps.Clock.Now(), "an identity provider refused a login", "auth_method", m.Name, "error", err)
		return nil, refused("auth-method %q: the identity provider refuses the code: begin the login again", m.Name)
	}
	claims, err := p.identity(with, k, m, token, r.ClientNonce)
	if err != nil {
		return nil, err
	}
	if m.Config.OIDCDisableUserInfo || k.meta.UserInfo == "" {
		return claims, nil
	}
	return p.withUserInfo(with, k, m, token, claims)
}

// bothEnd returns values with the end of ctx.
func bothEnd(values, ctx context.Context) (context.Context, context.CancelFunc) {
	out, cancel := context.WithCancel(values)
	stop := context.AfterFunc(ctx, cancel)
	return out, func() {
		stop()
		cancel()
	}
}

// proof is with what an exchange proves who asks.
func (p *Providers) proof(m *acl.AuthMethod, state string) (options []oauth2.AuthCodeOption, err error) {
	if m.Config.OIDCEnablePKCE {
		options = append(options, oauth2.VerifierOption(p.verifier(state)))
	}
	if m.Config.OIDCClientAssertion == nil {
		return options, nil
	}
	signed, err := assertion(m)
	if err != nil {
		return nil, err
	}
	return append(options, oauth2.SetAuthURLParam("client_assertion_type", assertionType),
		oauth2.SetAuthURLParam("client_assertion", signed)), nil
}

// identity returns the claims of the token about the person, which must be the provider's, for us, of this login, and in time.
func (p *Providers) identity(
	ctx context.Context, k *known, m *acl.AuthMethod, token *oauth2.Token, nonce string,
) (map[string]any, error) {
	const bad = "unable to validate the identity provider's token: "
	raw, ok := token.Extra("id_token").(string)
	if !ok {
		return nil, refused(bad + "there is none")
	}
	algs := m.Config.SigningAlgs
	if len(algs) == 0 {
		algs = []string{oidc.RS256}
	}
	verifier := k.provider.Verifier(&oidc.Config{SkipClientIDCheck: true, SupportedSigningAlgs: algs, Now: p.deps.Clock.Now})
	id, err := verifier.Verify(ctx, raw)
	switch {
	case err != nil && isNetwork(err):
		return nil, p.unreachable(m, "its keys", err)
	case err != nil:
		return nil, refused(bad+"%s", err.Error())
	case subtle.ConstantTimeCompare([]byte(id.Nonce), []byte(nonce)) != 1:
		return nil, refused(bad + "its nonce is another login's")
	case id.Subject == "":
		return nil, refused(bad + "it has no subject (sub)")
	case id.IssuedAt.After(p.deps.Clock.Now().Add(issuedLeeway)):
		return nil, refused(bad + "it is issued in the future (iat)")
	}
	if id.AccessTokenHash != "" {
		if err := id.VerifyAccessToken(token.AccessToken); err != nil {
			return nil, refused(bad+"%s", err.Error())
		}
	}
	var claims map[string]any
	if err := id.Claims(&claims); err != nil {
		return nil, refused(bad+"%s", err.Error())
	}
	return claims, audience(m, id.Audience, claims["azp"])
}

// audience refuses a token that is for somebody else (OpenID Connect Core, 3.1.3.7). Errors: Forbidden.
func audience(m *acl.AuthMethod, has []string, party any) error {
	c := m.Config
	ours := slices.Contains(has, c.OIDCClientID)
	if party != nil && party != c.OIDCClientID || !ours && party == nil {
		return refused("unable to validate the identity provider's token: it is for another client")
	}
	if len(has) > 1 && !ours {
		return refused("unable to validate the identity provider's token: it is for several clients, and not for this one")
	}
	if len(c.BoundAudiences) > 0 && !slices.ContainsFunc(has, func(a string) bool { return slices.Contains(c.BoundAudiences, a) }) {
		return refused("unable to validate the identity provider's token: its audience (aud) is none of the method's BoundAudiences")
	}
	return nil
}

// withUserInfo adds what the provider says about the person beside the token. What says whose the token is stays.
func (p *Providers) withUserInfo(
	ctx context.Context, k *known, m *acl.AuthMethod, token *oauth2.Token, claims map[string]any,
) (map[string]any, error) {
	info, err := k.provider.UserInfo(ctx, oauth2.StaticTokenSource(token))
	if err != nil {
		return nil, p.unreachable(m, "its information about the person", err)
	}
	if info.Subject != claims["sub"] {
		return nil, refused("the identity provider's information is about another person")
	}
	var more map[string]any
	if err := info.Claims(&more); err != nil {
		return nil, p.unreachable(m, "its information about the person", err)
	}
	for _, fixed := range []string{"iss", "sub", "aud", "exp", "nbf", "iat", "nonce", "azp", "at_hash"} {
		delete(more, fixed)
	}
	out := maps.Clone(claims)
	maps.Copy(out, more)
	return out, nil
}
