package federation

import (
	"bytes"
	"slices"
	"time"

	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/control/command"
)

// mostTogether bounds the objects of one command.
const mostTogether = 256

// accessDifferences are the commands that make access control here what it is there: first what takes rights away, then what gives some.
func accessDifferences(here, there *Access) (out []command.Command) {
	there = linked(there)
	newPolicies, gonePolicies := compare(policies, here.Policies, there.Policies)
	newRoles, goneRoles := compare(roles, here.Roles, there.Roles)
	newTokens, goneTokens := compare(tokens, here.Tokens, there.Tokens)
	newMethods, goneMethods := compare(methods, here.Methods, there.Methods)
	newBindings, goneBindings := compare(bindings, here.Bindings, there.Bindings)
	goneTokens = append(goneTokens, replaced(here.Tokens, newTokens)...)

	out = append(out, each(tokens.keys(goneTokens), func(k []string) command.Command { return &command.DeleteACLTokens{AccessorIDs: k} })...)
	out = append(out, each(bindings.keys(goneBindings), func(k []string) command.Command { return &command.DeleteBindingRules{IDs: k} })...)
	out = append(out, each(methods.keys(goneMethods), func(k []string) command.Command { return &command.DeleteAuthMethods{Names: k} })...)
	out = append(out, each(roles.keys(goneRoles), func(k []string) command.Command { return &command.DeleteACLRoles{IDs: k} })...)
	out = append(out, each(policies.keys(gonePolicies), func(k []string) command.Command { return &command.DeleteACLPolicies{Names: k} })...)

	out = append(out, each(newPolicies, func(l []*acl.Policy) command.Command { return &command.UpsertACLPolicies{Policies: l} })...)
	out = append(out, each(newRoles, func(l []*acl.Role) command.Command { return &command.UpsertACLRoles{Roles: l} })...)
	out = append(out, each(newTokens, func(l []*acl.Token) command.Command { return &command.UpsertACLTokens{Tokens: l} })...)
	out = append(out, each(newMethods, func(l []*acl.AuthMethod) command.Command { return &command.UpsertAuthMethods{Methods: l} })...)
	out = append(out, each(newBindings, func(l []*acl.BindingRule) command.Command { return &command.UpsertBindingRules{Rules: l} })...)
	return out
}

// each makes commands of a list, with a bounded part of it in each.
func each[T any](list []T, of func([]T) command.Command) (out []command.Command) {
	for part := range slices.Chunk(list, mostTogether) {
		out = append(out, of(part))
	}
	return out
}

// apart are the commands for the objects one by one, of a command that was refused for one of them; nil for one that has one.
func apart(c command.Command) (out []command.Command) {
	switch c := c.(type) {
	case *command.DeleteACLTokens:
		out = ones(c.AccessorIDs, func(k []string) command.Command { return &command.DeleteACLTokens{AccessorIDs: k} })
	case *command.DeleteBindingRules:
		out = ones(c.IDs, func(k []string) command.Command { return &command.DeleteBindingRules{IDs: k} })
	case *command.DeleteAuthMethods:
		out = ones(c.Names, func(k []string) command.Command { return &command.DeleteAuthMethods{Names: k} })
	case *command.DeleteACLRoles:
		out = ones(c.IDs, func(k []string) command.Command { return &command.DeleteACLRoles{IDs: k} })
	case *command.DeleteACLPolicies:
		out = ones(c.Names, func(k []string) command.Command { return &command.DeleteACLPolicies{Names: k} })
	case *command.UpsertACLRoles:
		out = ones(c.Roles, func(l []*acl.Role) command.Command { return &command.UpsertACLRoles{Roles: l} })
	case *command.UpsertACLTokens:
		out = ones(c.Tokens, func(l []*acl.Token) command.Command { return &command.UpsertACLTokens{Tokens: l} })
	case *command.UpsertAuthMethods:
		out = ones(c.Methods, func(l []*acl.AuthMethod) command.Command { return &command.UpsertAuthMethods{Methods: l} })
	case *command.UpsertBindingRules:
		out = ones(c.Rules, func(l []*acl.BindingRule) command.Command { return &command.UpsertBindingRules{Rules: l} })
	}
	return out
}

func ones[T any](list []T, of func([]T) command.Command) (out []command.Command) {
	if len(list) < 2 {
		return nil
	}
	for _, v := range list {
		out = append(out, of([]T{v}))
	}
	return out
}

// linked is access control without links to what is gone, which the state refuses in what is new. A policy or a role that was
// deleted gives nobody anything, and neither does a binding rule without its method.
func linked(a *Access) *Access {
	out := *a
	hasPolicy, hasRole, hasMethod := a.Policies.has(), a.Roles.has(), a.Methods.has()
	out.Roles = only(roles, a.Roles, func(r *acl.Role) (*acl.Role, bool) {
		if !slices.ContainsFunc(r.Policies, func(p *acl.RolePolicy) bool { return !hasPolicy[p.Name] }) {
			return r, true
		}
		next := r.Copy()
		next.Policies = slices.DeleteFunc(next.Policies, func(p *acl.RolePolicy) bool { return !hasPolicy[p.Name] })
		return next, true
	})
	out.Tokens = only(tokens, a.Tokens, func(t *acl.Token) (*acl.Token, bool) {
		if !slices.ContainsFunc(t.Roles, func(l *acl.TokenRole) bool { return !hasRole[l.ID] }) {
			return t, true
		}
		next := t.Copy()
		next.Roles = slices.DeleteFunc(next.Roles, func(l *acl.TokenRole) bool { return !hasRole[l.ID] })
		return next, true
	})
	out.Bindings = only(bindings, a.Bindings, func(b *acl.BindingRule) (*acl.BindingRule, bool) { return b, hasMethod[b.AuthMethod] })
	return &out
}

// has are the keys of the set.
func (s Set[T]) has() map[string]bool {
	out := make(map[string]bool, len(s.Keys))
	for _, key := range s.Keys {
		out[key] = true
	}
	return out
}

// replaced are the tokens here of which something differs there that cannot change: they make room for those of the same accessor.
func replaced(here Set[*acl.Token], changed []*acl.Token) (out []*acl.Token) {
	known := tokens.by(here)
	for _, t := range changed {
		if h := known[t.AccessorID]; h != nil && !sameLife(h, t) {
			out = append(out, h)
		}
	}
	return out
}

// sameLife compares what of a token cannot change.
func sameLife(a, b *acl.Token) bool {
	return a.SecretID == b.SecretID && a.CreateTime.Equal(b.CreateTime) && a.ExpirationTTL == b.ExpirationTTL &&
		(a.ExpirationTime == nil) == (b.ExpirationTime == nil) && sameTime(a.ExpirationTime, b.ExpirationTime)
}

func sameTime(a, b *time.Time) bool { return a == nil || b == nil || a.Equal(*b) }

// sameToken compares all but the indexes and the names of roles. The hash does not tell of links that were left out.
func sameToken(a, b *acl.Token) bool {
	return bytes.Equal(a.Hash, b.Hash) && sameLife(a, b) &&
		slices.EqualFunc(a.Roles, b.Roles, func(x, y *acl.TokenRole) bool { return x.ID == y.ID })
}

func samePolicy(a, b *acl.Policy) bool { return bytes.Equal(a.Hash, b.Hash) }

func sameRole(a, b *acl.Role) bool {
	return bytes.Equal(a.Hash, b.Hash) &&
		slices.EqualFunc(a.Policies, b.Policies, func(x, y *acl.RolePolicy) bool { return x.Name == y.Name })
}

// sameMethod compares all but the indexes and the secrets, which are encrypted otherwise in each region: who changes them changes the
// time of the last change, too.
func sameMethod(a, b *acl.AuthMethod) bool { return bytes.Equal(plainMethod(a), plainMethod(b)) }

func plainMethod(m *acl.AuthMethod) []byte {
	next := m.WithoutSecrets()
	next.CreateIndex, next.ModifyIndex = 0, 0
	next.CreateTime, next.ModifyTime = m.CreateTime.UTC(), m.ModifyTime.UTC()
	return encoded(&command.UpsertAuthMethods{Methods: []*acl.AuthMethod{next}})
}

func sameBinding(a, b *acl.BindingRule) bool {
	x, y := *a, *b
	x.CreateIndex, x.ModifyIndex, x.CreateTime, x.ModifyTime = 0, 0, time.Time{}, time.Time{}
	y.CreateIndex, y.ModifyIndex, y.CreateTime, y.ModifyTime = 0, 0, time.Time{}, time.Time{}
	return x == y && a.CreateTime.Equal(b.CreateTime) && a.ModifyTime.Equal(b.ModifyTime)
}

// encoded is a command as the log has it: two are the same if they have the same effect.
func encoded(c command.Command) []byte {
	data, _ := command.Encode(c) // what comes from a state was encoded before
	return data
}
