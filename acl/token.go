package acl

import (
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/drover-project/drover/internal/validation"
)

// The types of tokens.
const (
	ClientToken     = "client"     // may do what its policies and roles say
	ManagementToken = "management" // may do everything
)

// Token is a credential and what it stands for. Who holds SecretID has its rights; AccessorID names it and is no secret.
type Token struct {
	AccessorID     string // a UUID
	SecretID       Secret `json:",omitempty"` // a UUID
	Name           string // for people
	Type           string // ClientToken or ManagementToken
	Policies       []string
	Roles          []*TokenRole
	Global         bool // known in all regions
	CreateTime     time.Time
	ExpirationTime *time.Time `json:",omitempty"` // nil = never
	ExpirationTTL  TTL        `json:",omitzero"`  // what ExpirationTime was made of; 0 = nothing
	Hash           []byte     `json:",omitempty"` // of what the token may do
	CreateIndex    uint64
	ModifyIndex    uint64
}

// TokenRole links a token to a role. The ID holds, the name is for people; a request may have either.
type TokenRole struct {
	ID   string
	Name string
}

// TokenStub is a token in a list. It has no secret.
type TokenStub struct {
	AccessorID     string
	Name           string
	Type           string
	Policies       []string
	Roles          []*TokenRole
	Global         bool
	CreateTime     time.Time
	ExpirationTime *time.Time `json:",omitempty"`
	Hash           []byte     `json:",omitempty"`
	CreateIndex    uint64
	ModifyIndex    uint64
}

// Stub returns the token as lists have it.
func (t *Token) Stub() *TokenStub {
	return &TokenStub{
		AccessorID: t.AccessorID, Name: t.Name, Type: t.Type, Policies: t.Policies, Roles: t.Roles, Global: t.Global,
		CreateTime: t.CreateTime, ExpirationTime: t.ExpirationTime, Hash: t.Hash, CreateIndex: t.CreateIndex, ModifyIndex: t.ModifyIndex,
	}
}

// Copy returns a token of which every part may be changed.
func (t *Token) Copy() *Token {
	c := *t
	c.Policies, c.Hash = slices.Clone(t.Policies), slices.Clone(t.Hash)
	c.Roles = slices.Clone(t.Roles)
	for i, r := range c.Roles {
		link := *r
		c.Roles[i] = &link
	}
	if t.ExpirationTime != nil {
		c.ExpirationTime = new(*t.ExpirationTime)
	}
	return &c
}

// WithoutSecret returns a shallow copy that may be told to everybody who may know of the token.
func (t *Token) WithoutSecret() *Token {
	c := *t
	c.SecretID = ""
	return &c
}

// String names the token for people, without its secret.
func (t *Token) String() string {
	if t == nil {
		return "no token"
	}
	return fmt.Sprintf("%s token %s (%q)", t.Type, t.AccessorID, t.Name)
}

// LogValue implements slog.LogValuer: a log has what names the token.
func (t *Token) LogValue() slog.Value {
	if t == nil {
		return slog.StringValue("none")
	}
	return slog.GroupValue(slog.String("accessor", t.AccessorID), slog.String("name", t.Name), slog.String("type", t.Type))
}

// Expired reports whether the token's end was before now.
func (t *Token) Expired(now time.Time) bool {
	return t.ExpirationTime != nil && !now.Before(*t.ExpirationTime)
}

// TTLBounds are the shortest and the longest life that a token may be given. A token without an end is always allowed.
type TTLBounds struct{ Min, Max time.Duration }

// DefaultTTLBounds are those of a configuration that says nothing.
var DefaultTTLBounds = TTLBounds{Min: time.Minute, Max: 24 * time.Hour}

// Canonicalize leaves each policy and role once, in the order given, and drops what is nil.
func (t *Token) Canonicalize() {
	seen := map[string]bool{}
	t.Policies = slices.DeleteFunc(t.Policies, func(p string) bool {
		again := seen[p]
		seen[p] = true
		return again
	})
	links := map[TokenRole]bool{}
	t.Roles = slices.DeleteFunc(t.Roles, func(r *TokenRole) bool {
		if r == nil || links[*r] {
			return true
		}
		links[*r] = true
		return false
	})
}

// Validate reports everything that is wrong with a new token, whose CreateTime is set, or with a new form of old. Errors: Invalid.
func (t *Token) Validate(bounds TTLBounds, old *Token) error {
	v := &validation.Report{}
	text(v, "Name", t.Name, MaxTokenName)
	t.validateType(v)
	v.Check(len(t.Policies)+len(t.Roles) <= MaxLinks, "Policies",
		"a token has at most %d policies and roles: put policies into a role", MaxLinks)
	for _, p := range t.Policies {
		name(v, "Policies", p)
	}
	for _, r := range t.Roles {
		v.Check(r != nil && (r.ID != "" || r.Name != ""), "Roles", "a link needs the ID or the Name of a role")
	}
	if old == nil {
		t.validateLife(v, bounds)
	} else {
		t.validateChange(v, old)
	}
	return invalid("token", v)
}

// validateType checks that a token has rights of one kind.
func (t *Token) validateType(v *validation.Report) {
	links := len(t.Policies) + len(t.Roles)
	switch t.Type {
	case ClientToken:
		v.Check(links > 0, "Policies", "client token missing policies or roles: name one at least")
	case ManagementToken:
		v.Check(links == 0, "Policies",
			"management token cannot be associated with policies or roles: leave them out, or make it a client token")
	default:
		v.Addf("Type", "token type must be client or management, got %q", t.Type)
	}
}

// validateLife checks the end of a new token.
func (t *Token) validateLife(v *validation.Report, bounds TTLBounds) {
	v.Check(t.ExpirationTTL >= 0, "ExpirationTTL", "token expiration TTL %q should not be negative", t.ExpirationTTL)
	if t.ExpirationTTL < 0 || t.ExpirationTime == nil {
		return
	}
	switch life := t.ExpirationTime.Sub(t.CreateTime); {
	case life < 0:
		v.Addf("ExpirationTime", "ExpirationTime cannot be before CreateTime")
	case life < bounds.Min:
		v.Addf("ExpirationTime", "expiration time cannot be less than %s in the future (was %s)", bounds.Min, life)
	case life > bounds.Max:
		v.Addf("ExpirationTime", "expiration time cannot be more than %s in the future (was %s)", bounds.Max, life)
	}
}

// validateChange checks what of a token may not change.
func (t *Token) validateChange(v *validation.Report, old *Token) {
	v.Check(t.Global == old.Global, "Global", "cannot toggle global mode: make another token")
	v.Check(t.ExpirationTTL == old.ExpirationTTL, "ExpirationTTL", "cannot update expiration TTL: make another token")
	same := t.ExpirationTime == old.ExpirationTime ||
		t.ExpirationTime != nil && old.ExpirationTime != nil && t.ExpirationTime.Equal(*old.ExpirationTime)
	v.Check(same, "ExpirationTime", "cannot update expiration time: make another token")
	v.Check(t.SecretID == old.SecretID, "SecretID", "cannot update the secret: make another token")
}
