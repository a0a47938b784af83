package fsm

import (
	"slices"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/command"
)

// upsertAdmissionRules stores all the rules or none, keeping the creation index of those that exist. Intake has checked them. Errors:
// Invalid, Conflict for more than a cluster may have.
func (e *entry) upsertAdmissionRules(c *command.UpsertAdmissionRules) error {
	names := map[string]bool{}
	for r := range e.txn.AdmissionRules() {
		names[r.Name] = true
	}
	for _, r := range c.Rules {
		if r == nil || r.Name == "" {
			return drover.Errorf(drover.Invalid, "missing admission rule")
		}
		names[r.Name] = true
	}
	if len(names) > drover.MaxAdmissionRules {
		return drover.Errorf(drover.Conflict, "there would be %d admission rules, the limit is %d", len(names), drover.MaxAdmissionRules)
	}
	for _, r := range c.Rules {
		next := *r
		next.CreateIndex, next.ModifyIndex = e.index, e.index
		if old := e.txn.AdmissionRule(r.Name); old != nil {
			next.CreateIndex = old.CreateIndex
		}
		e.txn.PutAdmissionRule(&next)
	}
	return nil
}

// deleteAdmissionRules forgets all the rules or none. Errors: NotFound.
func (e *entry) deleteAdmissionRules(c *command.DeleteAdmissionRules) error {
	var doomed []*drover.AdmissionRule
	for _, name := range c.Names {
		r := e.txn.AdmissionRule(name)
		if r == nil {
			return drover.Errorf(drover.NotFound, "admission rule not found: %q", name)
		}
		if !slices.Contains(doomed, r) {
			doomed = append(doomed, r)
		}
	}
	for _, r := range doomed {
		e.txn.DeleteAdmissionRule(r)
	}
	return nil
}
