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

// listRoles answers GET /v1/acl/roles.
func (f *face) listRoles(w http.ResponseWriter, r *http.Request) error {
	return answer.Lister[*acl.RoleStub, *acl.RoleStub]{
		On: []answer.Source{{Table: tables.ACLRoles}},
		Items: func(q answer.Query, _ answer.Snapshot) iter.Seq[*acl.RoleStub] {
			return slices.Values(f.Access.Roles(httpapi.CallerOf(r.Context()), q.Prefix))
		},
		ID:   func(s *acl.RoleStub) string { return s.ID },
		View: func(s *acl.RoleStub, _ answer.Snapshot) *acl.RoleStub { return s },
		Sees: answer.Everybody[*acl.RoleStub], // Items asks
	}.Serve(f.Cluster, w, r)
}

// readRole answers GET /v1/acl/role/ID.
func (f *face) readRole(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	return f.oneRole(w, r, id, func(who *rights.Caller) (*acl.Role, error) { return f.Access.Role(who, id) })
}

// readRoleByName answers GET /v1/acl/role/name/NAME.
func (f *face) readRoleByName(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	return f.oneRole(w, r, "", func(who *rights.Caller) (*acl.Role, error) { return f.Access.RoleByName(who, name) })
}

// oneRole answers with a role that is read for the caller. Without an id the whole table is watched, as the name may move.
func (f *face) oneRole(
	w http.ResponseWriter, r *http.Request, id string, read func(who *rights.Caller) (*acl.Role, error),
) error {
	on := answer.Source{Table: tables.ACLRoles, Key: id}
	return single(f, w, r, on, read, func(r *acl.Role) uint64 { return r.ModifyIndex })
}

// writeRole answers PUT /v1/acl/role, which makes one, and PUT /v1/acl/role/ID.
func (f *face) writeRole(w http.ResponseWriter, r *http.Request) error {
	var role acl.Role
	if err := httpapi.DecodeJSON(r, &role); err != nil {
		return err
	}
	if id := r.PathValue("id"); id != "" && role.ID != id {
		return drover.Errorf(drover.Invalid, "ACL role ID does not match request path")
	}
	stored, index, err := f.Access.PutRole(r.Context(), httpapi.CallerOf(r.Context()), &role)
	if err != nil {
		return err
	}
	return f.written(w, r, index, stored)
}

// deleteRole answers DELETE /v1/acl/role/ID.
func (f *face) deleteRole(w http.ResponseWriter, r *http.Request) error {
	index, err := f.Access.DeleteRoles(r.Context(), httpapi.CallerOf(r.Context()), r.PathValue("id"))
	if err != nil {
		return err
	}
	return f.written(w, r, index, struct{}{})
}
