package acl

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
)

// refused checks the error: the field and what to do about it.
func refused(t *testing.T, err error, want ...string) {
	t.Helper()
	require.Error(t, err)
	require.Equal(t, drover.Invalid, drover.CodeOf(err))
	for _, w := range want {
		require.ErrorContains(t, err, w)
	}
}

func TestValidateTokens(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	token := func(change func(*Token)) *Token {
		k := &Token{Name: "ci", Type: ClientToken, Policies: []string{"deploy"}, CreateTime: now}
		change(k)
		return k
	}
	ends := func(in time.Duration) func(*Token) {
		return func(k *Token) { k.ExpirationTime = new(now.Add(in)) }
	}
	for _, ok := range []func(*Token){
		func(*Token) {}, ends(time.Minute), ends(24 * time.Hour),
		func(k *Token) { k.Type, k.Policies = ManagementToken, nil },
		func(k *Token) { k.Policies, k.Roles = nil, []*TokenRole{{Name: "r"}, {ID: "x"}} },
		func(k *Token) { k.Name = strings.Repeat("n", MaxTokenName) },
	} {
		require.NoError(t, token(ok).Validate(DefaultTTLBounds, nil))
	}
	for want, bad := range map[string]func(*Token){
		"Name: is longer than 256 bytes":                                   func(k *Token) { k.Name = strings.Repeat("n", MaxTokenName+1) },
		`Type: token type must be client or management, got ""`:            func(k *Token) { k.Type = "" },
		"Policies: client token missing policies or roles":                 func(k *Token) { k.Policies = nil },
		"Policies: management token cannot be associated with policies":    func(k *Token) { k.Type = ManagementToken },
		`Policies: invalid name "a b"`:                                     func(k *Token) { k.Policies = []string{"a b"} },
		"a token has at most 512 policies and roles":                       func(k *Token) { k.Policies = make([]string, MaxLinks+1) },
		"Roles: a link needs the ID or the Name":                           func(k *Token) { k.Roles = []*TokenRole{{}} },
		"ExpirationTTL: token expiration TTL \"-1s\" should not be":        func(k *Token) { k.ExpirationTTL = -TTL(time.Second) },
		"ExpirationTime: ExpirationTime cannot be before CreateTime":       ends(-time.Second),
		"expiration time cannot be less than 1m0s in the future (was 59s)": ends(59 * time.Second),
		"expiration time cannot be more than 24h0m0s in the future":        ends(24*time.Hour + 1),
	} {
		refused(t, token(bad).Validate(DefaultTTLBounds, nil), "invalid ACL token: ", want)
	}
	refused(t, token(func(k *Token) { k.Type, k.Name = "x", strings.Repeat("n", 999) }).Validate(DefaultTTLBounds, nil), "Name: ", "\nType: ")
}

// TestValidateTokenChanges: a token keeps what clients may have built upon.
func TestValidateTokenChanges(t *testing.T) {
	t.Parallel()
	at := time.Unix(1e9, 0)
	old := &Token{Type: ClientToken, Policies: []string{"a"}, ExpirationTime: &at, ExpirationTTL: TTL(time.Hour), SecretID: "s"}
	same := old.Copy()
	same.ExpirationTime = new(at.UTC())
	same.Name, same.Policies = "new", []string{"b"}
	require.NoError(t, same.Validate(DefaultTTLBounds, old))
	for want, change := range map[string]func(*Token){
		"Global: cannot toggle global mode":                 func(k *Token) { k.Global = true },
		"ExpirationTTL: cannot update expiration TTL":       func(k *Token) { k.ExpirationTTL++ },
		"ExpirationTime: cannot update expiration time":     func(k *Token) { k.ExpirationTime = nil },
		"ExpirationTime: cannot update expiration time: ":   func(k *Token) { k.ExpirationTime = new(at.Add(1)) },
		"SecretID: cannot update the secret":                func(k *Token) { k.SecretID = "t" },
		"Policies: client token missing policies or roles:": func(k *Token) { k.Policies = nil },
	} {
		k := old.Copy()
		change(k)
		refused(t, k.Validate(DefaultTTLBounds, old), want)
	}
}

func TestTokensExpire(t *testing.T) {
	t.Parallel()
	at := time.Unix(1e9, 0)
	require.False(t, (&Token{}).Expired(at))
	k := &Token{ExpirationTime: &at}
	require.False(t, k.Expired(at.Add(-1)))
	require.True(t, k.Expired(at))
	once := &OneTimeToken{ExpiresAt: at}
	require.False(t, once.Expired(at.Add(-1)))
	require.True(t, once.Expired(at))
}

func TestCanonicalize(t *testing.T) {
	t.Parallel()
	k := &Token{Policies: []string{"a", "b", "a"}, Roles: []*TokenRole{{ID: "1"}, nil, {ID: "1"}, {Name: "n"}}}
	k.Canonicalize()
	require.Equal(t, &Token{Policies: []string{"a", "b"}, Roles: []*TokenRole{{ID: "1"}, {Name: "n"}}}, k)
	r := &Role{Policies: []*RolePolicy{{"a"}, nil, {"a"}, {"b"}}}
	r.Canonicalize()
	require.Equal(t, []*RolePolicy{{"a"}, {"b"}}, r.Policies)
	p := &Policy{JobACL: &JobACL{}}
	p.Canonicalize()
	require.Nil(t, p.JobACL, "bound to nothing is not bound")
	p.JobACL = &JobACL{JobID: "j"}
	p.Canonicalize()
	require.Equal(t, &JobACL{Namespace: "default", JobID: "j"}, p.JobACL)
}

func TestValidatePoliciesAndRoles(t *testing.T) {
	t.Parallel()
	require.NoError(t, (&Policy{Name: "a-Z-9", JobACL: &JobACL{Namespace: "default", JobID: "j", Group: "g", Task: "t"}}).Validate())
	for want, p := range map[string]*Policy{
		`Name: invalid name "": give 1 to 128 letters`:    {},
		`Name: invalid name "a_b"`:                        {Name: "a_b"},
		"Description: is longer than 256 bytes":           {Name: "a", Description: strings.Repeat("x", 257)},
		"Rules: is longer than 262144 bytes":              {Name: "a", Rules: strings.Repeat("x", MaxRules+1)},
		"JobACL.JobID: name the job":                      {Name: "a", JobACL: &JobACL{Namespace: "n"}},
		"JobACL.Group: needs JobACL.JobID":                {Name: "a", JobACL: &JobACL{Group: "g"}},
		"JobACL.Task: needs JobACL.Group":                 {Name: "a", JobACL: &JobACL{JobID: "j", Task: "t"}},
		`Name: invalid name "` + strings.Repeat("n", 129): {Name: strings.Repeat("n", 129)},
	} {
		refused(t, p.Validate(), "invalid ACL policy: ", want)
	}
	require.NoError(t, (&Role{Name: "r", Policies: []*RolePolicy{{"p"}}}).Validate())
	for want, r := range map[string]*Role{
		"Policies: at least one policy should be specified": {Name: "r"},
		"Policies[1]: name the policy":                      {Name: "r", Policies: []*RolePolicy{{"a"}, nil}},
		`Policies[0].Name: invalid name "a b"`:              {Name: "r", Policies: []*RolePolicy{{"a b"}}},
		"a role has at most 512 policies":                   {Name: "r", Policies: make([]*RolePolicy, MaxLinks+1)},
		"Name: invalid name":                                {Policies: []*RolePolicy{{"a"}}},
	} {
		refused(t, r.Validate(), "invalid ACL role: ", want)
	}
}

func TestValidateMethodsAndRules(t *testing.T) {
	t.Parallel()
	method := func(change func(*AuthMethod)) error {
		m := &AuthMethod{
			Name: "ci", Type: MethodOIDC, TokenLocality: LocalTokens, MaxTokenTTL: TTL(time.Hour),
			Config: &AuthMethodConfig{OIDCDiscoveryURL: "https://x", OIDCClientID: "id"},
		}
		change(m)
		return m.Validate(DefaultTTLBounds)
	}
	require.NoError(t, method(func(*AuthMethod) {}))
	require.NoError(t, method(func(m *AuthMethod) { m.Type, m.Config = MethodJWT, &AuthMethodConfig{JWKSURL: "https://x"} }))
	for want, change := range map[string]func(*AuthMethod){
		`Type: must be "OIDC" or "JWT", got "SAML"`:            func(m *AuthMethod) { m.Type = "SAML" },
		`TokenLocality: must be "local" or "global", got ""`:   func(m *AuthMethod) { m.TokenLocality = "" },
		"MaxTokenTTL: must be 1m0s to 24h0m0s, got 0s":         func(m *AuthMethod) { m.MaxTokenTTL = 0 },
		"Config: say how the identity provider is asked":       func(m *AuthMethod) { m.Config = nil },
		"Config.OIDCDiscoveryURL: an OIDC method needs":        func(m *AuthMethod) { m.Config.OIDCDiscoveryURL = "" },
		"Config.OIDCClientID: an OIDC method needs the id":     func(m *AuthMethod) { m.Config.OIDCClientID = "" },
		"exactly one of JWTValidationPubKeys, JWKSURL and":     func(m *AuthMethod) { m.Type, m.Config = MethodJWT, &AuthMethodConfig{} },
		"Config.ClockSkewLeeway: is at most 10m0s, got 1h0m0s": func(m *AuthMethod) { m.Config.ClockSkewLeeway = TTL(time.Hour) },
		"needs one of PemKey and PemKeyFile": func(m *AuthMethod) {
			m.Config.OIDCClientAssertion = &ClientAssertion{PrivateKey: &ClientAssertionKey{}}
		},
	} {
		refused(t, method(change), "invalid ACL auth method: ", want)
	}
	require.NoError(t, (&BindingRule{AuthMethod: "ci", BindType: BindRole, BindName: "r"}).Validate())
	require.NoError(t, (&BindingRule{AuthMethod: "ci", BindType: BindManagement}).Validate())
	for want, b := range map[string]*BindingRule{
		"AuthMethod: name the auth method":              {BindType: BindManagement},
		"BindName: name the policy that the rule gives": {AuthMethod: "ci", BindType: BindPolicy},
		"BindName: must be empty where BindType is":     {AuthMethod: "ci", BindType: BindManagement, BindName: "x"},
		`BindType: must be "role", "policy" or "manage`: {AuthMethod: "ci"},
		"Description: is longer than 256 bytes":         {AuthMethod: "ci", BindType: BindManagement, Description: strings.Repeat("x", 257)},
	} {
		refused(t, b.Validate(), "invalid ACL binding rule: ", want)
	}
}
