package access

import (
	"context"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/policy"
	"github.com/drover-project/drover/internal/rights"
)

// PutPolicy stores a policy whose rules were read. Errors: ErrDenied unless the caller manages, Invalid with the line and column of what is
// wrong with the rules.
func (a *Access) PutPolicy(ctx context.Context, who *rights.Caller, p *acl.Policy) (uint64, error) {
	if err := a.writes(who, "policies"); err != nil {
		return 0, err
	}
	if p == nil {
		return 0, drover.Errorf(drover.Invalid, "missing policy")
	}
	next := p.Copy()
	next.Canonicalize()
	if err := next.Validate(); err != nil {
		return 0, err
	}
	if _, err := policy.Parse(next.Rules); err != nil {
		return 0, err
	}
	next.SetHash()
	return a.apply(ctx, &command.UpsertACLPolicies{Policies: []*acl.Policy{next}})
}

// DeletePolicies removes policies, all or none. Errors: ErrDenied unless the caller manages, NotFound.
func (a *Access) DeletePolicies(ctx context.Context, who *rights.Caller, names ...string) (uint64, error) {
	if err := a.writes(who, "policies"); err != nil {
		return 0, err
	}
	return a.apply(ctx, &command.DeleteACLPolicies{Names: names})
}

// Policy returns a policy to who manages and to who has it. Errors: ErrDenied, NotFound for who manages: nobody else learns which there
// are.
func (a *Access) Policy(who *rights.Caller, name string) (*acl.Policy, error) {
	if manages(who) != nil {
		for _, p := range a.held(who) {
			if p.Name == name {
				return p, nil
			}
		}
		return nil, ErrDenied
	}
	if p := a.deps.Store.Snapshot().ACLPolicy(name); p != nil {
		return p, nil
	}
	return nil, drover.Errorf(drover.NotFound, "ACL policy not found")
}

// held returns the policies of the caller's token and its roles.
func (a *Access) held(who *rights.Caller) []*acl.Policy {
	if who == nil {
		return nil
	}
	return policiesOf(a.deps.Store.Snapshot(), who.Token)
}

// Policies lists the policies whose names begin with prefix: all to who manages, to others those that they have.
func (a *Access) Policies(who *rights.Caller, prefix string) []*acl.PolicyStub {
	out := []*acl.PolicyStub{}
	mine := map[string]bool{}
	for _, p := range a.held(who) {
		mine[p.Name] = true
	}
	all := manages(who) == nil
	for p := range a.deps.Store.Snapshot().ACLPolicies(prefix) {
		if all || mine[p.Name] {
			out = append(out, p.Stub())
		}
	}
	return out
}

// OwnPolicies returns the policies that the caller has, with their rules. Who manages has none.
func (a *Access) OwnPolicies(who *rights.Caller) []*acl.Policy {
	return append([]*acl.Policy{}, a.held(who)...)
}
