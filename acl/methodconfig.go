package acl

import (
	"crypto/x509"
	"encoding/pem"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/drover-project/drover/internal/validation"
)

// Where the key of a client assertion comes from.
const (
	KeyOfKeyring = "nomad"
	KeyOfMethod  = "private_key"
	KeyOfSecret  = "client_secret"
)

// SigningAlgs are the algorithms that signatures of identity providers may have. Algorithms with a shared key, and none at all, are not
// among them.
func SigningAlgs() []string {
	return []string{"RS256", "RS384", "RS512", "ES256", "ES384", "ES512", "PS256", "PS384", "PS512", "EdDSA"}
}

// The bounds of a method's lists and texts.
const (
	maxMethodList = 128
	maxPEM        = 64 << 10
)

// sources counts where the keys come from.
func (c *AuthMethodConfig) sources() (n int) {
	for _, given := range []bool{len(c.JWTValidationPubKeys) > 0, c.JWKSURL != "", c.OIDCDiscoveryURL != ""} {
		if given {
			n++
		}
	}
	return n
}

// validate checks what each type needs.
func (c *AuthMethodConfig) validate(v *validation.Report, kind string) {
	switch kind {
	case MethodOIDC:
		v.Check(c.OIDCDiscoveryURL != "", "Config.OIDCDiscoveryURL", "an OIDC method needs its provider's address, without /.well-known")
		v.Check(c.OIDCClientID != "", "Config.OIDCClientID", "an OIDC method needs the id that the provider knows it by")
		v.Check(c.JWKSURL == "" && len(c.JWTValidationPubKeys) == 0, "Config",
			"JWKSURL and JWTValidationPubKeys are for JWT methods: leave them out")
	case MethodJWT:
		v.Check(c.sources() == 1, "Config", "a JWT method needs exactly one of JWTValidationPubKeys, JWKSURL and OIDCDiscoveryURL, got %d",
			c.sources())
	}
	address(v, "Config.OIDCDiscoveryURL", c.OIDCDiscoveryURL)
	address(v, "Config.JWKSURL", c.JWKSURL)
	for _, l := range []struct {
		path string
		of   TTL
	}{
		{"Config.ExpirationLeeway", c.ExpirationLeeway},
		{"Config.NotBeforeLeeway", c.NotBeforeLeeway},
		{"Config.ClockSkewLeeway", c.ClockSkewLeeway},
	} {
		v.Check(time.Duration(l.of) <= MaxLeeway, l.path, "is at most %s, got %s: set the clocks instead", MaxLeeway, l.of)
	}
	c.validateKeys(v)
	c.validateLists(v)
	if c.OIDCClientAssertion != nil {
		c.OIDCClientAssertion.validate(v, c)
	}
}

// validateKeys checks what is PEM and which algorithms are taken.
func (c *AuthMethodConfig) validateKeys(v *validation.Report) {
	for _, alg := range c.SigningAlgs {
		v.Check(slices.Contains(SigningAlgs(), alg), "Config.SigningAlgs", "%q is none of %s", alg, strings.Join(SigningAlgs(), ", "))
	}
	for _, key := range c.JWTValidationPubKeys {
		v.Check(isPublicKey(key), "Config.JWTValidationPubKeys", "one is no public key or certificate in PEM: give RSA, EC or Ed25519 keys")
	}
	for _, ca := range c.DiscoveryCaPem {
		v.Check(isAuthority(ca), "Config.DiscoveryCaPem", "one is no certificate in PEM")
	}
	v.Check(c.JWKSCACert == "" || isAuthority(c.JWKSCACert), "Config.JWKSCACert", "is no certificate in PEM")
}

// validateLists bounds what a method may have.
func (c *AuthMethodConfig) validateLists(v *validation.Report) {
	for path, n := range map[string]int{
		"Config.JWTValidationPubKeys": len(c.JWTValidationPubKeys), "Config.OIDCScopes": len(c.OIDCScopes),
		"Config.BoundAudiences": len(c.BoundAudiences), "Config.BoundIssuer": len(c.BoundIssuer),
		"Config.AllowedRedirectURIs": len(c.AllowedRedirectURIs), "Config.DiscoveryCaPem": len(c.DiscoveryCaPem),
		"Config.ClaimMappings": len(c.ClaimMappings), "Config.ListClaimMappings": len(c.ListClaimMappings),
	} {
		v.Check(n <= maxMethodList, path, "has at most %d entries, got %d", maxMethodList, n)
	}
	for _, uri := range c.AllowedRedirectURIs {
		u, err := url.Parse(uri)
		v.Check(err == nil && u.Scheme != "" && u.Host != "", "Config.AllowedRedirectURIs",
			"%q is no address such as http://localhost:4649/oidc/callback", uri)
	}
	for path, mappings := range map[string]map[string]string{
		"Config.ClaimMappings": c.ClaimMappings, "Config.ListClaimMappings": c.ListClaimMappings,
	} {
		to := map[string]bool{}
		for claim, name := range mappings {
			v.Check(claim != "" && IsVariable(name), path, "claim %q is mapped to %q: give it a name of letters, digits and '_'", claim, name)
			v.Check(!to[name], path, "two claims are mapped to %q: give each a name of its own", name)
			to[name] = true
		}
	}
}

// IsVariable reports whether a selector and a template can name it: letters, digits and '_', not a digit first.
func IsVariable(s string) bool {
	for i, r := range s {
		letter := r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return s != "" && len(s) <= MaxName
}

// validate checks how a signature stands in the place of a client's secret.
func (a *ClientAssertion) validate(v *validation.Report, of *AuthMethodConfig) {
	const path = "Config.OIDCClientAssertion"
	_, kid := a.ExtraHeaders["kid"]
	v.Check(!kid, path+".ExtraHeaders", "must not have %q: use PrivateKey.KeyID", "kid")
	switch a.KeySource {
	case KeyOfKeyring:
		v.Addf(path+".KeySource", "%q is not supported: give a key of its own with %q", KeyOfKeyring, KeyOfMethod)
	case KeyOfSecret:
		v.Check(of.OIDCClientSecret != "", "Config.OIDCClientSecret", "is the key of the client assertion: give it")
		v.Check(slices.Contains([]string{"", "HS256", "HS384", "HS512"}, a.KeyAlgorithm), path+".KeyAlgorithm",
			"must be HS256, HS384 or HS512 where the key is the client's secret, got %q", a.KeyAlgorithm)
	case KeyOfMethod:
		v.Check(slices.Contains([]string{"", "RS256", "RS384", "RS512"}, a.KeyAlgorithm), path+".KeyAlgorithm",
			"must be RS256, RS384 or RS512, got %q", a.KeyAlgorithm)
		if a.PrivateKey == nil {
			v.Addf(path+".PrivateKey", "give the key")
			return
		}
		a.PrivateKey.validate(v, path+".PrivateKey")
	default:
		v.Addf(path+".KeySource", "must be %q or %q, got %q", KeyOfMethod, KeyOfSecret, a.KeySource)
	}
}

// validate checks that a key and what providers find it by are given once each.
func (k *ClientAssertionKey) validate(v *validation.Report, path string) {
	v.Check((k.PemKey == "") != (k.PemKeyFile == ""), path, "needs one of PemKey and PemKeyFile")
	v.Check(k.PemKeyFile == "" || filepath.IsAbs(k.PemKeyFile), path+".PemKeyFile", "must be an absolute path")
	v.Check(k.PemCertFile == "" || filepath.IsAbs(k.PemCertFile), path+".PemCertFile", "must be an absolute path")
	given := 0
	for _, s := range []string{k.KeyID, k.PemCert, k.PemCertFile} {
		if s != "" {
			given++
		}
	}
	v.Check(given == 1, path, "needs one of KeyID, PemCert and PemCertFile, got %d", given)
	headers := []string{"", "x5t", "x5t#S256"}
	if k.KeyID != "" {
		headers = []string{"", "kid"}
	}
	v.Check(slices.Contains(headers, k.KeyIDHeader), path+".KeyIDHeader", "must be one of %s, got %q",
		strings.Join(headers[1:], ", "), k.KeyIDHeader)
}

// address checks what is asked over the network; "" is for others to refuse.
func address(v *validation.Report, path, s string) {
	if s == "" {
		return
	}
	u, err := url.Parse(s)
	ok := err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && u.User == nil && len(s) <= 2048
	v.Check(ok, path, "must be an address such as https://login.example.com, without credentials")
}

// isPublicKey reports whether the text is one public key or a certificate.
func isPublicKey(text string) bool {
	block, _ := pem.Decode([]byte(text))
	if block == nil || len(text) > maxPEM {
		return false
	}
	if _, err := x509.ParsePKIXPublicKey(block.Bytes); err == nil {
		return true
	}
	_, err := x509.ParseCertificate(block.Bytes)
	return err == nil
}

// isAuthority reports whether the text has certificates.
func isAuthority(text string) bool {
	return len(text) <= maxPEM && x509.NewCertPool().AppendCertsFromPEM([]byte(text))
}
