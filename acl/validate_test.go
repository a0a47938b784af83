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
			m.Config.OIDCClientAssertion = &ClientAssertion{KeySource: KeyOfMethod, PrivateKey: &ClientAssertionKey{}}
		},
		`KeySource: "nomad" is not supported`: func(m *AuthMethod) {
			m.Config.OIDCClientAssertion = &ClientAssertion{KeySource: KeyOfKeyring}
		},
		"OIDCClientSecret: is the key of": func(m *AuthMethod) {
			m.Config.OIDCClientAssertion = &ClientAssertion{KeySource: KeyOfSecret}
		},
		"PrivateKey.PemKeyFile: must be an absolute path": func(m *AuthMethod) {
			m.Config.OIDCClientAssertion = &ClientAssertion{
				KeySource: KeyOfMethod, PrivateKey: &ClientAssertionKey{PemKeyFile: "key", KeyID: "k"},
			}
		},
		`Config.SigningAlgs: "HS256" is none of RS256`: func(m *AuthMethod) { m.Config.SigningAlgs = []string{"HS256"} },
		`Config.SigningAlgs: "none" is none of`:        func(m *AuthMethod) { m.Config.SigningAlgs = []string{"none"} },
		"without credentials":                          func(m *AuthMethod) { m.Config.OIDCDiscoveryURL = "https://u:p@x" },
		"OIDCDiscoveryURL: must be an address":         func(m *AuthMethod) { m.Config.OIDCDiscoveryURL = "file:///etc/passwd" },
		"DiscoveryCaPem: one is no certificate":        func(m *AuthMethod) { m.Config.DiscoveryCaPem = []string{"x"} },
		"are for JWT methods":                          func(m *AuthMethod) { m.Config.JWKSURL = "https://x" },
		"one is no public key": func(m *AuthMethod) {
			m.Type, m.Config = MethodJWT, &AuthMethodConfig{JWTValidationPubKeys: []string{"x"}}
		},
		`claim "a" is mapped to "x y"`: func(m *AuthMethod) { m.Config.ClaimMappings = map[string]string{"a": "x y"} },
		`two claims are mapped to "x"`: func(m *AuthMethod) { m.Config.ListClaimMappings = map[string]string{"a": "x", "b": "x"} },
		`"here" is no address`:         func(m *AuthMethod) { m.Config.AllowedRedirectURIs = []string{"here"} },
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
		"Selector: is longer than 4096 bytes":           {AuthMethod: "ci", BindType: BindManagement, Selector: strings.Repeat("x", 4097)},
		"Description: is longer than 256 bytes":         {AuthMethod: "ci", BindType: BindManagement, Description: strings.Repeat("x", 257)},
	} {
		refused(t, b.Validate(), "invalid ACL binding rule: ", want)
	}
}

// TestMerge: what a change does not say stays; what stands in another one's place does not.
func TestMerge(t *testing.T) {
	t.Parallel()
	old := &AuthMethod{
		Name: "ci", Type: MethodJWT, TokenLocality: LocalTokens, MaxTokenTTL: TTL(time.Hour), Default: true, CreateTime: time.Unix(1, 0),
		Config: &AuthMethodConfig{
			JWKSURL: "https://x", BoundAudiences: []string{"a"}, ClaimMappings: map[string]string{"a": "b"}, OIDCClientSecret: "s",
		},
	}
	next := &AuthMethod{Name: "ci", TokenLocality: GlobalTokens}
	next.Merge(old)
	next.Canonicalize(time.Unix(2, 0))
	want := old.Copy()
	want.TokenLocality, want.Default, want.TokenNameFormat, want.ModifyTime = GlobalTokens, false, DefaultTokenName, time.Unix(2, 0)
	require.Equal(t, want, next)
	next.Config.BoundAudiences[0] = "changed"
	next.Config.ClaimMappings["a"] = "changed"
	require.Equal(t, "a", old.Config.BoundAudiences[0], "a copy")
	require.Equal(t, "b", old.Config.ClaimMappings["a"], "a copy")

	next = &AuthMethod{Name: "ci", Config: &AuthMethodConfig{OIDCDiscoveryURL: "https://y", BoundAudiences: []string{}}}
	next.Merge(old)
	require.Empty(t, next.Config.JWKSURL, "another source")
	require.Empty(t, next.Config.BoundAudiences, "said to be none")
	require.Equal(t, Secret("redacted"), next.WithoutSecrets().Config.OIDCClientSecret)
	require.Equal(t, Secret("s"), next.Config.OIDCClientSecret)

	rule := &BindingRule{BindType: BindManagement}
	rule.Merge(&BindingRule{AuthMethod: "ci", Selector: "value.a == b", BindType: BindRole, BindName: "r", CreateTime: time.Unix(1, 0)})
	require.Equal(t, &BindingRule{AuthMethod: "ci", Selector: "value.a == b", BindType: BindManagement, CreateTime: time.Unix(1, 0)}, rule)
}
