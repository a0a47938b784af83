package access

import (
	"context"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/binding"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/rights"
)

// PutBindingRule makes a rule, or changes the one with the ID: what b does not say stays as it is. Errors: ErrDenied unless the
// caller manages, NotFound, Invalid.
func (a *Access) PutBindingRule(ctx context.Context, who *rights.Caller, b *acl.BindingRule) (*acl.BindingRule, uint64, error) {
	if err := a.writes(who, "binding rules"); err != nil {
		return nil, 0, err
	}
	if b == nil {
		return nil, 0, drover.Errorf(drover.Invalid, "missing ACL binding rule")
	}
	next := *b
	next.CreateTime = a.now()
	switch old := a.deps.Store.Snapshot().BindingRule(next.ID); {
	case next.ID == "":
		next.ID = a.deps.IDs.New()
	case !id.Valid(next.ID):
		return nil, 0, drover.Errorf(drover.Invalid, "ID: it is a UUID; leave it out for a new binding rule")
	case old == nil:
		return nil, 0, drover.Errorf(drover.NotFound, "cannot find binding rule %s", next.ID)
	default:
		next.Merge(old)
	}
	next.Canonicalize(a.now())
	if err := next.Validate(); err != nil {
		return nil, 0, err
	}
	if err := binding.Check(&next); err != nil {
		return nil, 0, drover.Errorf(drover.Invalid, "invalid ACL binding rule: %w", err)
	}
	stored, index, err := propose[[]*acl.BindingRule](ctx, a, &command.UpsertBindingRules{Rules: []*acl.BindingRule{&next}})
	if err != nil {
		return nil, 0, err
	}
	return stored[0], index, nil
}

// DeleteBindingRules removes rules, all or none. Tokens that logins got by them stay. Errors: ErrDenied unless the caller manages,
// NotFound.
func (a *Access) DeleteBindingRules(ctx context.Context, who *rights.Caller, ids ...string) (uint64, error) {
	if err := a.writes(who, "binding rules"); err != nil {
		return 0, err
	}
	return a.apply(ctx, &command.DeleteBindingRules{IDs: ids})
}

// BindingRule returns a rule to who manages. Errors: ErrDenied, NotFound.
func (a *Access) BindingRule(who *rights.Caller, ruleID string) (*acl.BindingRule, error) {
	if err := manages(who); err != nil {
		return nil, err
	}
	if b := a.deps.Store.Snapshot().BindingRule(ruleID); b != nil {
		return b, nil
	}
	return nil, drover.Errorf(drover.NotFound, "ACL binding rule not found")
}

// BindingRules lists the rules whose ids begin with prefix, to who manages; nobody else sees any.
func (a *Access) BindingRules(who *rights.Caller, prefix string) []*acl.BindingRuleStub {
	out := []*acl.BindingRuleStub{}
	if manages(who) != nil {
		return out
	}
	for b := range a.deps.Store.Snapshot().BindingRules(prefix) {
		out = append(out, b.Stub())
	}
	return out
}
