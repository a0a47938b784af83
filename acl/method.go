package acl

import (
	"time"

	"github.com/drover-project/drover/internal/validation"
)

// The types of auth methods, and where the tokens are known that they give.
const (
	MethodOIDC = "OIDC"
	MethodJWT  = "JWT"

	LocalTokens  = "local"  // in the region of the login
	GlobalTokens = "global" // in all regions
)

// AuthMethod is a way to log in: who proves to an identity provider's satisfaction who they are gets a token.
type AuthMethod struct {
	Name            string
	Type            string // MethodOIDC or MethodJWT
	TokenLocality   string // LocalTokens or GlobalTokens
	TokenNameFormat string // "" = ${auth_method_type}-${auth_method_name}
	MaxTokenTTL     TTL    // of the tokens it gives
	Default         bool   // used by a login that names none; one method of each type at most
	Config          *AuthMethodConfig
	CreateTime      time.Time
	ModifyTime      time.Time
	CreateIndex     uint64
	ModifyIndex     uint64
	// Sealed has the secrets of Config, encrypted, as servers keep them: then Redacted stands in their places. Nil where there are none.
	Sealed *SealedSecrets `json:"-"`
}

// SealedSecrets are the secrets of an auth method, encrypted.
type SealedSecrets struct {
	KeyID string // of the root key
	Data  []byte
}

// MethodSecrets are the secrets of an auth method.
type MethodSecrets struct {
	OIDCClientSecret Secret `json:",omitempty"`
	PemKey           Secret `json:",omitempty"` // of the client assertion
}

// AuthMethodConfig says how the identity provider is asked and what it has to answer.
type AuthMethodConfig struct {
	JWTValidationPubKeys []string // PEM; one of these, JWKSURL and OIDCDiscoveryURL
	JWKSURL              string
	OIDCDiscoveryURL     string
	OIDCClientID         string
	OIDCClientSecret     Secret
	OIDCClientAssertion  *ClientAssertion
	OIDCEnablePKCE       bool
	OIDCDisableUserInfo  bool
	OIDCScopes           []string
	BoundAudiences       []string
	BoundIssuer          []string
	AllowedRedirectURIs  []string
	DiscoveryCaPem       []string
	JWKSCACert           string
	SigningAlgs          []string
	ExpirationLeeway     TTL
	NotBeforeLeeway      TTL
	ClockSkewLeeway      TTL
	ClaimMappings        map[string]string // claim → name in selectors
	ListClaimMappings    map[string]string
	VerboseLogging       bool
}

// ClientAssertion is how a server proves to the provider who it is with a signature instead of a secret.
type ClientAssertion struct {
	Audience     []string
	KeySource    string // "nomad", "private_key" or "client_secret"
	KeyAlgorithm string
	PrivateKey   *ClientAssertionKey
	ExtraHeaders map[string]string
}

// ClientAssertionKey is the key of a client assertion, or the files where servers find it.
type ClientAssertionKey struct {
	PemKey      Secret
	PemKeyFile  string
	KeyIDHeader string // "kid", "x5t" or "x5t#S256"
	KeyID       string
	PemCert     string
	PemCertFile string
}

// AuthMethodStub is an auth method in a list, which everybody may read.
type AuthMethodStub struct {
	Name        string
	Type        string
	Default     bool
	CreateIndex uint64
	ModifyIndex uint64
}

// Stub returns the method as lists have it.
func (m *AuthMethod) Stub() *AuthMethodStub {
	return &AuthMethodStub{Name: m.Name, Type: m.Type, Default: m.Default, CreateIndex: m.CreateIndex, ModifyIndex: m.ModifyIndex}
}

// Validate reports everything that is wrong with the method. Errors: Invalid.
func (m *AuthMethod) Validate(bounds TTLBounds) error {
	v := &validation.Report{}
	name(v, "Name", m.Name)
	v.Check(m.Type == MethodOIDC || m.Type == MethodJWT, "Type", "must be %q or %q, got %q", MethodOIDC, MethodJWT, m.Type)
	v.Check(m.TokenLocality == LocalTokens || m.TokenLocality == GlobalTokens, "TokenLocality",
		"must be %q or %q, got %q", LocalTokens, GlobalTokens, m.TokenLocality)
	life := time.Duration(m.MaxTokenTTL)
	v.Check(life >= bounds.Min && life <= bounds.Max, "MaxTokenTTL", "must be %s to %s, got %s", bounds.Min, bounds.Max, life)
	text(v, "TokenNameFormat", m.TokenNameFormat, MaxTokenName)
	if m.Config == nil {
		v.Addf("Config", "say how the identity provider is asked")
	} else {
		m.Config.validate(v, m.Type)
	}
	return invalid("auth method", v)
}

// MaxLeeway bounds how far clocks of an identity provider and of a server may be apart by configuration.
const MaxLeeway = 10 * time.Minute
