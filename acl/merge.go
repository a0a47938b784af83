package acl

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"time"
)

// DefaultTokenName is the name of tokens where a method says none.
const DefaultTokenName = "${auth_method_type}-${auth_method_name}"

// Copy returns a method of which every part may be changed.
func (m *AuthMethod) Copy() *AuthMethod {
	next := *m
	if m.Sealed != nil {
		next.Sealed = &SealedSecrets{KeyID: m.Sealed.KeyID, Data: bytes.Clone(m.Sealed.Data)}
	}
	if m.Config == nil {
		return &next
	}
	c := *m.Config
	for _, list := range []*[]string{
		&c.JWTValidationPubKeys, &c.OIDCScopes, &c.BoundAudiences, &c.BoundIssuer, &c.AllowedRedirectURIs, &c.DiscoveryCaPem, &c.SigningAlgs,
	} {
		*list = slices.Clone(*list)
	}
	c.ClaimMappings, c.ListClaimMappings = maps.Clone(c.ClaimMappings), maps.Clone(c.ListClaimMappings)
	if c.OIDCClientAssertion != nil {
		a := *c.OIDCClientAssertion
		a.Audience, a.ExtraHeaders = slices.Clone(a.Audience), maps.Clone(a.ExtraHeaders)
		if a.PrivateKey != nil {
			a.PrivateKey = new(*a.PrivateKey)
		}
		c.OIDCClientAssertion = &a
	}
	next.Config = &c
	return &next
}

// Redacted stands where readers see an auth method's secret. In a write it stands for the secret that is there.
const Redacted Secret = "redacted"

// places are where the method has secrets; nil for those that it cannot have.
func (m *AuthMethod) places() (clientSecret, pemKey *Secret) {
	c := m.Config
	if c == nil {
		return nil, nil
	}
	if a := c.OIDCClientAssertion; a != nil && a.PrivateKey != nil {
		pemKey = &a.PrivateKey.PemKey
	}
	return &c.OIDCClientSecret, pemKey
}

// Secrets returns what stands in the places of the method's secrets; the zero value if there is nothing.
func (m *AuthMethod) Secrets() (s MethodSecrets) {
	clientSecret, pemKey := m.places()
	if clientSecret != nil {
		s.OIDCClientSecret = *clientSecret
	}
	if pemKey != nil {
		s.PemKey = *pemKey
	}
	return s
}

// WithoutSecrets returns a copy that readers and events may have: Redacted stands where there are secrets.
func (m *AuthMethod) WithoutSecrets() *AuthMethod {
	next := m.Copy()
	next.Sealed = nil
	clientSecret, pemKey := next.places()
	for _, place := range []*Secret{clientSecret, pemKey} {
		if place != nil && *place != "" {
			*place = Redacted
		}
	}
	return next
}

// WithSecrets returns a copy with the secrets wherever Redacted stands.
func (m *AuthMethod) WithSecrets(s MethodSecrets) *AuthMethod {
	next := m.Copy()
	next.Sealed = nil
	clientSecret, pemKey := next.places()
	if clientSecret != nil && *clientSecret == Redacted {
		*clientSecret = s.OIDCClientSecret
	}
	if pemKey != nil && *pemKey == Redacted {
		*pemKey = s.PemKey
	}
	return next
}

// Merge takes what the method does not say from old. Flags are as the method has them, and so is what stands in another one's place: a
// method that names a source of keys has that one alone.
func (m *AuthMethod) Merge(old *AuthMethod) {
	m.Type, m.TokenLocality = cmp.Or(m.Type, old.Type), cmp.Or(m.TokenLocality, old.TokenLocality)
	m.TokenNameFormat, m.MaxTokenTTL = cmp.Or(m.TokenNameFormat, old.TokenNameFormat), cmp.Or(m.MaxTokenTTL, old.MaxTokenTTL)
	m.CreateTime = old.CreateTime
	if m.Config == nil || old.Config == nil {
		m.Config = cmp.Or(m.Config, old.Copy().Config)
		return
	}
	c, o := m.Config, old.Copy().Config
	if c.sources() == 0 {
		c.JWTValidationPubKeys, c.JWKSURL, c.OIDCDiscoveryURL = o.JWTValidationPubKeys, o.JWKSURL, o.OIDCDiscoveryURL
	}
	c.OIDCClientID, c.OIDCClientSecret = cmp.Or(c.OIDCClientID, o.OIDCClientID), cmp.Or(c.OIDCClientSecret, o.OIDCClientSecret)
	c.OIDCClientAssertion = cmp.Or(c.OIDCClientAssertion, o.OIDCClientAssertion)
	c.JWKSCACert = cmp.Or(c.JWKSCACert, o.JWKSCACert)
	for _, list := range [][2]*[]string{
		{&c.OIDCScopes, &o.OIDCScopes},
		{&c.BoundAudiences, &o.BoundAudiences},
		{&c.BoundIssuer, &o.BoundIssuer},
		{&c.AllowedRedirectURIs, &o.AllowedRedirectURIs},
		{&c.DiscoveryCaPem, &o.DiscoveryCaPem},
		{&c.SigningAlgs, &o.SigningAlgs},
	} {
		if *list[0] == nil {
			*list[0] = *list[1]
		}
	}
	c.ExpirationLeeway = cmp.Or(c.ExpirationLeeway, o.ExpirationLeeway)
	c.NotBeforeLeeway = cmp.Or(c.NotBeforeLeeway, o.NotBeforeLeeway)
	c.ClockSkewLeeway = cmp.Or(c.ClockSkewLeeway, o.ClockSkewLeeway)
	if c.ClaimMappings == nil {
		c.ClaimMappings = o.ClaimMappings
	}
	if c.ListClaimMappings == nil {
		c.ListClaimMappings = o.ListClaimMappings
	}
}

// Canonicalize sets what the method does not say, and the times.
func (m *AuthMethod) Canonicalize(now time.Time) {
	m.TokenNameFormat = cmp.Or(m.TokenNameFormat, DefaultTokenName)
	if m.CreateTime.IsZero() {
		m.CreateTime = now
	}
	m.ModifyTime = now
}

// Merge takes what the rule does not say from old, its selector too: a rule that forgot it would be for everybody.
func (b *BindingRule) Merge(old *BindingRule) {
	b.Description, b.AuthMethod = cmp.Or(b.Description, old.Description), cmp.Or(b.AuthMethod, old.AuthMethod)
	b.Selector, b.BindType = cmp.Or(b.Selector, old.Selector), cmp.Or(b.BindType, old.BindType)
	if b.BindType != BindManagement {
		b.BindName = cmp.Or(b.BindName, old.BindName)
	}
	b.CreateTime = old.CreateTime
}

// Canonicalize sets the times.
func (b *BindingRule) Canonicalize(now time.Time) {
	if b.CreateTime.IsZero() {
		b.CreateTime = now
	}
	b.ModifyTime = now
}
