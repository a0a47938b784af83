package idp

import (
	"cmp"
	"context"
	"crypto"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/cap/jwt"
	"golang.org/x/oauth2"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/acl"
)

// maxToken bounds a signed token, in bytes.
const maxToken = 64 << 10

// VerifyJWT returns the claims of a token that is signed by the method's keys, in time, and for us. Errors: Forbidden, Unavailable.
func (p *Providers) VerifyJWT(ctx context.Context, m *acl.AuthMethod, token acl.Secret) (map[string]any, error) {
	if len(token) > maxToken {
		return nil, refused("unable to validate provided token: it is longer than %d bytes", maxToken)
	}
	k, err := p.of(m, func(k *known) (err error) {
		k.validator, err = p.validator(ctx, m)
		return err
	})
	if err != nil {
		return nil, err
	}
	c := m.Config
	algs := []jwt.Alg{}
	for _, a := range c.SigningAlgs {
		algs = append(algs, jwt.Alg(a))
	}
	claims, err := k.validator.Validate(ctx, string(token), jwt.Expected{
		Audiences: c.BoundAudiences, SigningAlgorithms: algs, Now: p.deps.Clock.Now,
		NotBeforeLeeway: time.Duration(c.NotBeforeLeeway), ExpirationLeeway: time.Duration(c.ExpirationLeeway),
		ClockSkewLeeway: time.Duration(c.ClockSkewLeeway),
	})
	switch {
	case err != nil && isNetwork(err):
		return nil, p.unreachable(m, "its keys", err)
	case errors.Is(err, errSoon): // its keys were fetched just now, and none of them is the token's
		return nil, refused("unable to validate provided token: no known key verifies its signature")
	case err != nil:
		return nil, refused("unable to validate provided token: %s", err.Error())
	}
	issuers := c.BoundIssuer
	if len(issuers) == 0 && c.OIDCDiscoveryURL != "" {
		issuers = []string{c.OIDCDiscoveryURL}
	}
	if issuer, _ := claims["iss"].(string); len(issuers) > 0 && !slices.Contains(issuers, issuer) {
		return nil, refused("unable to validate provided token: invalid issuer (iss) claim")
	}
	return claims, nil
}

// validator checks signatures with the method's keys.
func (p *Providers) validator(ctx context.Context, m *acl.AuthMethod) (*jwt.Validator, error) {
	c := m.Config
	if len(c.JWTValidationPubKeys) > 0 {
		keys, err := publicKeys(c.JWTValidationPubKeys)
		if err != nil {
			return nil, err
		}
		set, err := jwt.NewStaticKeySet(keys)
		if err != nil {
			return nil, drover.Errorf(drover.Internal, "auth-method %q: %w", m.Name, err)
		}
		return jwt.NewValidator(set)
	}
	address, authorities := c.JWKSURL, []string(nil)
	if c.JWKSCACert != "" {
		authorities = []string{c.JWKSCACert}
	}
	if address == "" {
		authorities = c.DiscoveryCaPem
	}
	with, err := p.client(ctx, authorities)
	if err != nil {
		return nil, err
	}
	if address == "" {
		if address, err = discoverKeys(with, c.OIDCDiscoveryURL); err != nil {
			return nil, p.unreachable(m, "its configuration", err)
		}
	}
	client, ok := with.Value(oauth2.HTTPClient).(*http.Client)
	if !ok {
		return nil, drover.Errorf(drover.Internal, "auth-method %q has no client", m.Name)
	}
	client.Transport = &seldom{next: client.Transport, clock: p.deps.Clock}
	set, err := jwt.NewJSONWebKeySet(with, address, "")
	if err != nil {
		return nil, drover.Errorf(drover.Internal, "auth-method %q: %w", m.Name, err)
	}
	return jwt.NewValidator(set)
}

// publicKeys reads keys and certificates in PEM.
func publicKeys(texts []string) (keys []crypto.PublicKey, err error) {
	for _, text := range texts {
		block, _ := pem.Decode([]byte(text))
		if block == nil {
			return nil, drover.Errorf(drover.Invalid, "JWTValidationPubKeys: one is no PEM")
		}
		key, err := x509.ParsePKIXPublicKey(block.Bytes)
		if err != nil {
			cert, err := x509.ParseCertificate(block.Bytes)
			if err != nil {
				return nil, drover.Errorf(drover.Invalid, "JWTValidationPubKeys: one is neither a public key nor a certificate")
			}
			key = cert.PublicKey
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// metadata is what of a provider's configuration is ours to look at.
type metadata struct {
	Issuer      string   `json:"issuer"`
	Keys        string   `json:"jwks_uri"`
	UserInfo    string   `json:"userinfo_endpoint"`
	AuthMethods []string `json:"token_endpoint_auth_methods_supported"`
	SendsIssuer bool     `json:"authorization_response_iss_parameter_supported"`
}

// discoverKeys asks the issuer where its keys are.
func discoverKeys(ctx context.Context, issuer string) (string, error) {
	client, ok := ctx.Value(oauth2.HTTPClient).(*http.Client)
	if !ok {
		client = http.DefaultClient
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(issuer, "/")+"/.well-known/openid-configuration", nil)
	if err != nil {
		return "", err
	}
	res, err := client.Do(r)
	if err != nil {
		return "", err
	}
	defer func() { _ = res.Body.Close() }() // it was read
	var found metadata
	switch err := json.NewDecoder(res.Body).Decode(&found); {
	case res.StatusCode != http.StatusOK:
		return "", drover.Errorf(drover.Unavailable, "it answered %s", res.Status)
	case err != nil:
		return "", err
	case found.Issuer != issuer:
		return "", drover.Errorf(drover.Invalid, "it says that it is %q", cmp.Or(found.Issuer, "nobody"))
	case found.Keys == "":
		return "", drover.Errorf(drover.Invalid, "it names no jwks_uri")
	}
	return found.Keys, nil
}
