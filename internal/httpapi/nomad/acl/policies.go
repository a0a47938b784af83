package acl

import (
	"net/http"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/nomad/answer"
	"github.com/drover-project/drover/internal/rights"
	"github.com/drover-project/drover/internal/tables"
)

// listPolicies answers GET /v1/acl/policies.
func (f *face) listPolicies(w http.ResponseWriter, r *http.Request) error {
	id := func(p *acl.PolicyStub) string { return p.Name }
	return list(f, w, r, id, f.Access.Policies, tables.ACLPolicies)
}

// ownPolicies answers GET /v1/acl/policy/self, with the rules.
func (f *face) ownPolicies(w http.ResponseWriter, r *http.Request) error {
	id := func(p *acl.Policy) string { return p.Name }
	own := func(who *rights.Caller, _ string) []*acl.Policy { return f.Access.OwnPolicies(who) }
	return list(f, w, r, id, own, tables.ACLPolicies, tables.ACLRoles, tables.ACLTokens)
}

// readPolicy answers GET /v1/acl/policy/NAME.
func (f *face) readPolicy(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	on := answer.Source{Table: tables.ACLPolicies, Key: name}
	read := func(who *rights.Caller) (*acl.Policy, error) { return f.Access.Policy(who, name) }
	return single(f, w, r, on, read, func(p *acl.Policy) uint64 { return p.ModifyIndex })
}

// writePolicy answers PUT /v1/acl/policy/NAME.
func (f *face) writePolicy(w http.ResponseWriter, r *http.Request) error {
	var p acl.Policy
	if err := httpapi.DecodeJSON(r, &p); err != nil {
		return err
	}
	if p.Name != r.PathValue("name") {
		return drover.Errorf(drover.Invalid, "ACL policy name does not match request path")
	}
	index, err := f.Access.PutPolicy(r.Context(), httpapi.CallerOf(r.Context()), &p)
	if err != nil {
		return err
	}
	return f.written(w, r, index, struct{}{})
}

// deletePolicy answers DELETE /v1/acl/policy/NAME.
func (f *face) deletePolicy(w http.ResponseWriter, r *http.Request) error {
	return f.remove(w, r, "name", f.Access.DeletePolicies)
}
