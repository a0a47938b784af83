package cluster

import (
	"iter"
	"net/http"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/nomad/answer"
	"github.com/drover-project/drover/internal/policy"
	"github.com/drover-project/drover/internal/rights"
	"github.com/drover-project/drover/internal/tables"
)

// admissionRoutes lists the routes of admission rules, which Nomad has not.
func (f *face) admissionRoutes() []httpapi.Route {
	read, write := httpapi.Level(policy.Operator, policy.Read), httpapi.Level(policy.Operator, policy.Write)
	return []httpapi.Route{
		{Pattern: "GET /v1/admission/rules", Where: httpapi.Reads, Need: read, Handle: f.listAdmissionRules},
		{Pattern: "GET /v1/admission/rule/{name}", Where: httpapi.Reads, Need: read, Handle: f.readAdmissionRule},
		{Pattern: "PUT,POST /v1/admission/rule/{name}", Where: httpapi.Authority, Need: write, Handle: f.upsertAdmissionRule},
		{Pattern: "DELETE /v1/admission/rule/{name}", Where: httpapi.Authority, Need: write, Handle: f.deleteAdmissionRule},
	}
}

// listAdmissionRules answers GET /v1/admission/rules.
func (f *face) listAdmissionRules(w http.ResponseWriter, r *http.Request) error {
	name := func(r *drover.AdmissionRule) string { return r.Name }
	return answer.Lister[*drover.AdmissionRule, *drover.AdmissionRule]{
		On:    []answer.Source{{Table: tables.AdmissionRules}},
		Items: func(_ answer.Query, s answer.Snapshot) iter.Seq[*drover.AdmissionRule] { return s.AdmissionRules() },
		ID:    name, Keep: answer.HasPrefix(r, name), Sees: func(*rights.Caller, *drover.AdmissionRule) bool { return true },
		View: func(r *drover.AdmissionRule, _ answer.Snapshot) *drover.AdmissionRule { return r },
	}.Serve(f.Cluster, w, r)
}

// readAdmissionRule answers GET /v1/admission/rule/NAME.
func (f *face) readAdmissionRule(w http.ResponseWriter, r *http.Request) error {
	find := func(_ answer.Query, s answer.Snapshot) (*drover.AdmissionRule, uint64) {
		if rule := s.AdmissionRule(r.PathValue("name")); rule != nil {
			return rule, rule.ModifyIndex
		}
		return nil, 0
	}
	return answer.Single(f.Cluster, w, r, answer.Source{Table: tables.AdmissionRules}, "admission rule", find)
}

// upsertAdmissionRule answers PUT /v1/admission/rule/NAME.
func (f *face) upsertAdmissionRule(w http.ResponseWriter, r *http.Request) error {
	var rule drover.AdmissionRule // strictly: a rule with a typo would refuse nothing
	if err := httpapi.DecodeStrictJSON(r, &rule); err != nil {
		return err
	}
	if rule.Name != r.PathValue("name") {
		return drover.Errorf(drover.Invalid, "Name: %q is not the name in the request's path", rule.Name)
	}
	o, err := f.Intake.UpsertAdmissionRule(r.Context(), &rule)
	if err != nil {
		return err
	}
	return f.Written(w, r, o, struct{}{})
}

// deleteAdmissionRule answers DELETE /v1/admission/rule/NAME.
func (f *face) deleteAdmissionRule(w http.ResponseWriter, r *http.Request) error {
	o, err := f.Intake.DeleteAdmissionRule(r.Context(), r.PathValue("name"))
	if err != nil {
		return err
	}
	return f.Written(w, r, o, struct{}{})
}
