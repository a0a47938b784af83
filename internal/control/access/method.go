package access

import (
	"context"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/binding"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/rights"
)

// PutAuthMethod makes a way to log in, or changes the one with the name: what m does not say stays as it is, and so does a secret for which
// acl.Redacted stands. Its secrets are encrypted before they are committed, and not in what is returned. Errors: ErrDenied unless the
// caller manages, Invalid, also for a second default one of a type; Unavailable while the keyring encrypts nothing.
func (a *Access) PutAuthMethod(ctx context.Context, who *rights.Caller, m *acl.AuthMethod) (*acl.AuthMethod, uint64, error) {
	if err := a.writes(who, "auth methods"); err != nil {
		return nil, 0, err
	}
	if m == nil {
		return nil, 0, drover.Errorf(drover.Invalid, "missing ACL auth method")
	}
	next := m.Copy()
	next.CreateTime = a.now()
	old := a.deps.Store.Snapshot().AuthMethod(next.Name)
	if old != nil {
		next.Merge(old)
	}
	next.Canonicalize(a.now())
	next, err := a.completed(ctx, next, old)
	if err != nil {
		return nil, 0, err
	}
	if err := next.Validate(a.deps.TTL); err != nil {
		return nil, 0, err
	}
	if err := binding.CheckTokenName(next); err != nil {
		return nil, 0, drover.Errorf(drover.Invalid, "invalid ACL auth method: %w", err)
	}
	if next, err = a.Seal(ctx, next); err != nil {
		return nil, 0, err
	}
	stored, index, err := propose[[]*acl.AuthMethod](ctx, a, &command.UpsertAuthMethods{Methods: []*acl.AuthMethod{next}})
	if err != nil {
		return nil, 0, asInvalid(err)
	}
	return stored[0].WithoutSecrets(), index, nil
}

// DeleteAuthMethods removes ways to log in, all or none. Tokens that they gave stay. Errors: ErrDenied unless the caller manages, NotFound.
func (a *Access) DeleteAuthMethods(ctx context.Context, who *rights.Caller, names ...string) (uint64, error) {
	if err := a.writes(who, "auth methods"); err != nil {
		return 0, err
	}
	return a.apply(ctx, &command.DeleteAuthMethods{Names: names})
}

// AuthMethod returns a method, without its secrets, to who manages. Errors: ErrDenied, NotFound.
func (a *Access) AuthMethod(who *rights.Caller, name string) (*acl.AuthMethod, error) {
	if err := manages(who); err != nil {
		return nil, err
	}
	if m := a.deps.Store.Snapshot().AuthMethod(name); m != nil {
		return m.WithoutSecrets(), nil
	}
	return nil, drover.Errorf(drover.NotFound, "ACL auth method not found")
}

// AuthMethods lists the methods whose names begin with prefix, to everybody: who is to log in has no token yet.
func (a *Access) AuthMethods(prefix string) []*acl.AuthMethodStub {
	out := []*acl.AuthMethodStub{}
	for m := range a.deps.Store.Snapshot().AuthMethods(prefix) {
		out = append(out, m.Stub())
	}
	return out
}
