package access

import (
	"cmp"
	"context"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/rights"
)

// CreateToken makes a token, with ids of ours. Errors: ErrDenied unless the caller manages, Invalid.
func (a *Access) CreateToken(ctx context.Context, who *rights.Caller, t *acl.Token) (*acl.Token, uint64, error) {
	if err := manages(who); err != nil {
		return nil, 0, err
	}
	if t == nil || t.AccessorID != "" {
		return nil, 0, drover.Errorf(drover.Invalid, "AccessorID: a new token gets one: leave it out, or upload a token with both ids")
	}
	if t.SecretID != "" {
		return nil, 0, drover.Errorf(drover.Invalid, "SecretID: a new token gets one: leave it out, or upload a token with both ids")
	}
	next := t.Copy()
	next.AccessorID, next.SecretID = a.deps.IDs.New(), acl.Secret(a.deps.IDs.New())
	return a.storeNew(ctx, next)
}

// storeNew stores a token whose ids are set.
func (a *Access) storeNew(ctx context.Context, next *acl.Token) (*acl.Token, uint64, error) {
	next.CreateTime = a.now()
	if next.ExpirationTTL > 0 {
		if next.ExpirationTime != nil {
			return nil, 0, drover.Errorf(drover.Invalid, "ExpirationTTL: give it or ExpirationTime, not both")
		}
		next.ExpirationTime = new(next.CreateTime.Add(time.Duration(next.ExpirationTTL)))
	}
	return a.storeToken(ctx, next, nil)
}

// storeToken stores a token; old is what it replaces, nil for a new one.
func (a *Access) storeToken(ctx context.Context, next, old *acl.Token) (*acl.Token, uint64, error) {
	if next.Global || old != nil && old.Global {
		if err := a.own("global tokens"); err != nil {
			return nil, 0, err
		}
	}
	if err := link(a.deps.Store.Snapshot(), next); err != nil {
		return nil, 0, err
	}
	next.Canonicalize()
	if err := next.Validate(a.deps.TTL, old); err != nil {
		return nil, 0, err
	}
	next.SetHash()
	stored, index, err := propose[[]*acl.Token](ctx, a, &command.UpsertACLTokens{Tokens: []*acl.Token{next}})
	if err != nil {
		return nil, 0, err
	}
	return stored[0], index, nil
}

// link completes the links to roles, which a request may give by ID or by name. Errors: Invalid for a role that is not there.
func link(s *store.Snapshot, t *acl.Token) error {
	for _, l := range t.Roles {
		if l == nil || l.ID == "" && l.Name == "" {
			continue // Validate tells of it
		}
		role := s.ACLRole(l.ID)
		if l.ID == "" {
			role = s.ACLRoleByName(l.Name)
		}
		if role == nil {
			if l.ID == "" {
				return drover.Errorf(drover.Invalid, "cannot find role %s", l.Name)
			}
			return drover.Errorf(drover.Invalid, "cannot find role %s", l.ID)
		}
		l.ID, l.Name = role.ID, role.Name
	}
	return nil
}

// UpdateToken replaces the token with the accessor of t; with a secret of its own an unknown one is uploaded. What a request leaves out of
// what cannot change stays. Errors: ErrDenied unless the caller manages, NotFound, Invalid.
func (a *Access) UpdateToken(ctx context.Context, who *rights.Caller, t *acl.Token) (*acl.Token, uint64, error) {
	if err := manages(who); err != nil {
		return nil, 0, err
	}
	if t == nil || !id.Valid(t.AccessorID) {
		return nil, 0, drover.Errorf(drover.Invalid, "AccessorID: it is a UUID")
	}
	next := t.Copy()
	old := a.deps.Store.Snapshot().ACLToken(t.AccessorID)
	if old == nil {
		return a.upload(ctx, next)
	}
	if next.SecretID == "" {
		next.SecretID = old.SecretID
	}
	next.ExpirationTTL = cmp.Or(next.ExpirationTTL, old.ExpirationTTL)
	if next.ExpirationTime == nil {
		next.ExpirationTime = old.ExpirationTime
	}
	next.CreateTime = old.CreateTime
	return a.storeToken(ctx, next, old)
}

// upload stores a client token with ids that somebody else made.
func (a *Access) upload(ctx context.Context, next *acl.Token) (*acl.Token, uint64, error) {
	switch {
	case next.SecretID == "":
		return nil, 0, drover.Errorf(drover.NotFound, "cannot find token %s", next.AccessorID)
	case !id.Valid(string(next.SecretID)):
		return nil, 0, drover.Errorf(drover.Invalid, "SecretID: it is a UUID")
	case next.Type == acl.ManagementToken:
		return nil, 0, drover.Errorf(drover.Invalid, "Type: cannot upload management tokens: create one")
	}
	return a.storeNew(ctx, next)
}

// CloneToken makes a token with the rights of another one: its type, policies, roles and region. It has no end unless that
// one has, whose TTL begins anew then. Errors: ErrDenied unless the caller manages, NotFound, Invalid.
func (a *Access) CloneToken(ctx context.Context, who *rights.Caller, accessor, name string) (*acl.Token, uint64, error) {
	of, err := a.Token(who, accessor)
	if err != nil {
		return nil, 0, err
	}
	next := &acl.Token{Name: name, Type: of.Type, Policies: of.Policies, Roles: of.Roles, Global: of.Global, ExpirationTTL: of.ExpirationTTL}
	if of.ExpirationTime != nil && of.ExpirationTTL == 0 {
		next.ExpirationTime = of.ExpirationTime
	}
	return a.CreateToken(ctx, who, next)
}

// DeleteTokens removes tokens, all or none. Errors: ErrDenied unless the caller manages, NotFound.
func (a *Access) DeleteTokens(ctx context.Context, who *rights.Caller, accessors ...string) (uint64, error) {
	if err := manages(who); err != nil {
		return 0, err
	}
	s := a.deps.Store.Snapshot()
	for _, accessor := range accessors {
		if t := s.ACLToken(accessor); t != nil && t.Global {
			if err := a.own("global tokens"); err != nil {
				return 0, err
			}
		}
	}
	return a.apply(ctx, &command.DeleteACLTokens{AccessorIDs: accessors})
}

// Token returns a token with its secret, to who manages and to its holder. Errors: ErrDenied, NotFound.
func (a *Access) Token(who *rights.Caller, accessor string) (*acl.Token, error) {
	if manages(who) != nil && !who.Is(accessor) {
		return nil, ErrDenied
	}
	s := a.deps.Store.Snapshot()
	if t := s.ACLToken(accessor); t != nil {
		return named(s, t), nil
	}
	return nil, drover.Errorf(drover.NotFound, "ACL token not found")
}

// Self returns the caller's own token. Errors: ErrDenied for who has none.
func (a *Access) Self(who *rights.Caller) (*acl.Token, error) {
	switch {
	case who == nil, who.Token.SecretID == "" && !who.Management():
		return nil, ErrDenied
	case who.Token.SecretID == "": // of the configuration
		return who.Token, nil
	}
	return a.Token(who, who.Token.AccessorID)
}

// Tokens lists the tokens whose accessors begin with prefix, or the global ones of them, ordered by accessor: all to who manages, none to
// others.
func (a *Access) Tokens(who *rights.Caller, prefix string, global bool) []*acl.TokenStub {
	out := []*acl.TokenStub{}
	if manages(who) != nil {
		return out
	}
	s := a.deps.Store.Snapshot()
	for t := range s.ACLTokens(prefix) {
		if !global || t.Global {
			out = append(out, named(s, t).Stub())
		}
	}
	return out
}

// named is the token with the present names of its roles, and without links to roles that are gone.
func named(s *store.Snapshot, t *acl.Token) *acl.Token {
	if len(t.Roles) == 0 {
		return t
	}
	next := *t
	next.Roles = nil
	for _, l := range t.Roles {
		if role := s.ACLRole(l.ID); role != nil {
			next.Roles = append(next.Roles, &acl.TokenRole{ID: role.ID, Name: role.Name})
		}
	}
	return &next
}
