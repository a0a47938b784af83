package store

import (
	"iter"

	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/tables"
)

// AuthMethod returns the method or nil.
func (r *reader) AuthMethod(name string) *acl.AuthMethod {
	return get[acl.AuthMethod](r, tables.AuthMethods, term(name))
}

// AuthMethods yields the methods whose names begin with prefix, ordered by name.
func (r *reader) AuthMethods(prefix string) iter.Seq[*acl.AuthMethod] {
	return scan[acl.AuthMethod](r, tables.AuthMethods, indexID, prefix)
}

// BindingRule returns the rule or nil.
func (r *reader) BindingRule(id string) *acl.BindingRule {
	return get[acl.BindingRule](r, tables.BindingRules, term(id))
}

// BindingRules yields the rules whose ids begin with prefix, ordered by id.
func (r *reader) BindingRules(prefix string) iter.Seq[*acl.BindingRule] {
	return scan[acl.BindingRule](r, tables.BindingRules, indexID, prefix)
}

// BindingRulesOf yields the rules for logins with the method, ordered by id.
func (r *reader) BindingRulesOf(method string) iter.Seq[*acl.BindingRule] {
	return scan[acl.BindingRule](r, tables.BindingRules, indexMethod, term(method))
}

// PutAuthMethod stores the method.
func (t *Txn) PutAuthMethod(m *acl.AuthMethod) { t.put(tables.AuthMethods, m.Name, m) }

// DeleteAuthMethod forgets the method.
func (t *Txn) DeleteAuthMethod(m *acl.AuthMethod) { t.drop(tables.AuthMethods, m.Name, m) }

// PutBindingRule stores the rule.
func (t *Txn) PutBindingRule(b *acl.BindingRule) { t.put(tables.BindingRules, b.ID, b) }

// DeleteBindingRule forgets the rule.
func (t *Txn) DeleteBindingRule(b *acl.BindingRule) { t.drop(tables.BindingRules, b.ID, b) }

// RestoreAuthMethod stores a method.
func (t *Txn) RestoreAuthMethod(m *acl.AuthMethod) { t.insert(tables.AuthMethods, m) }

// RestoreBindingRule stores a rule.
func (t *Txn) RestoreBindingRule(b *acl.BindingRule) { t.insert(tables.BindingRules, b) }
