package acl

import (
	"iter"
	"net/http"
	"slices"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/nomad/answer"
	"github.com/drover-project/drover/internal/rights"
	"github.com/drover-project/drover/internal/tables"
)

// listPolicies answers GET /v1/acl/policies.
func (f *face) listPolicies(w http.ResponseWriter, r *http.Request) error {
	return answer.Lister[*acl.PolicyStub, *acl.PolicyStub]{
		On: []answer.Source{{Table: tables.ACLPolicies}},
		Items: func(q answer.Query, _ answer.Snapshot) iter.Seq[*acl.PolicyStub] {
			return slices.Values(f.Access.Policies(httpapi.CallerOf(r.Context()), q.Prefix))
		},
		ID:   func(p *acl.PolicyStub) string { return p.Name },
		View: func(p *acl.PolicyStub, _ answer.Snapshot) *acl.PolicyStub { return p },
		Sees: answer.Everybody[*acl.PolicyStub], // Items asks
	}.Serve(f.Cluster, w, r)
}

// ownPolicies answers GET /v1/acl/policy/self, with the rules.
func (f *face) ownPolicies(w http.ResponseWriter, r *http.Request) error {
	return answer.Lister[*acl.Policy, *acl.Policy]{
		On: []answer.Source{{Table: tables.ACLPolicies}, {Table: tables.ACLRoles}, {Table: tables.ACLTokens}},
		Items: func(answer.Query, answer.Snapshot) iter.Seq[*acl.Policy] {
			return slices.Values(f.Access.OwnPolicies(httpapi.CallerOf(r.Context())))
		},
		ID:   func(p *acl.Policy) string { return p.Name },
		View: func(p *acl.Policy, _ answer.Snapshot) *acl.Policy { return p },
		Sees: answer.Everybody[*acl.Policy], // Items asks
	}.Serve(f.Cluster, w, r)
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
	index, err := f.Access.DeletePolicies(r.Context(), httpapi.CallerOf(r.Context()), r.PathValue("name"))
	if err != nil {
		return err
	}
	return f.written(w, r, index, struct{}{})
}
