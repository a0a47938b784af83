package acl

import (
	"net/http"

	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/httpapi/nomad/answer"
	"github.com/drover-project/drover/internal/rights"
	"github.com/drover-project/drover/internal/tables"
)

// listRoles answers GET /v1/acl/roles.
func (f *face) listRoles(w http.ResponseWriter, r *http.Request) error {
	id := func(s *acl.RoleStub) string { return s.ID }
	return list(f, w, r, id, f.Access.Roles, tables.ACLRoles)
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
	id := func(role *acl.Role) string { return role.ID }
	return write(f, w, r, "id", id, "ACL role ID does not match request path", f.Access.PutRole)
}

// deleteRole answers DELETE /v1/acl/role/ID.
func (f *face) deleteRole(w http.ResponseWriter, r *http.Request) error {
	return f.remove(w, r, "id", f.Access.DeleteRoles)
}
