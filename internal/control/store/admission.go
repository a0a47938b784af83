package store

import (
	"iter"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/tables"
)

// AdmissionRule returns the rule or nil.
func (r *reader) AdmissionRule(name string) *drover.AdmissionRule {
	return get[drover.AdmissionRule](r, tables.AdmissionRules, term(name))
}

// AdmissionRules yields the rules by name.
func (r *reader) AdmissionRules() iter.Seq[*drover.AdmissionRule] {
	return scan[drover.AdmissionRule](r, tables.AdmissionRules, indexID, "")
}

// PutAdmissionRule stores the rule.
func (t *Txn) PutAdmissionRule(r *drover.AdmissionRule) { t.put(tables.AdmissionRules, r.Name, r) }

// DeleteAdmissionRule forgets the rule.
func (t *Txn) DeleteAdmissionRule(r *drover.AdmissionRule) { t.drop(tables.AdmissionRules, r.Name, r) }

// RestoreAdmissionRule stores a rule.
func (t *Txn) RestoreAdmissionRule(r *drover.AdmissionRule) { t.insert(tables.AdmissionRules, r) }
