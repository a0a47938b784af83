package access

import (
	"context"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/rights"
)

// PutRole makes a role, or replaces the one with the ID. Errors: ErrDenied unless the caller manages, NotFound, Invalid, also for a
// name that another role has.
func (a *Access) PutRole(ctx context.Context, who *rights.Caller, r *acl.Role) (*acl.Role, uint64, error) {
	if err := a.writes(who, "roles"); err != nil {
		return nil, 0, err
	}
	if r == nil {
		return nil, 0, drover.Errorf(drover.Invalid, "missing role")
	}
	next := r.Copy()
	switch {
	case next.ID == "":
		next.ID = a.deps.IDs.New()
	case !id.Valid(next.ID):
		return nil, 0, drover.Errorf(drover.Invalid, "ID: it is a UUID; leave it out for a new role")
	case a.deps.Store.Snapshot().ACLRole(next.ID) == nil:
		return nil, 0, drover.Errorf(drover.NotFound, "cannot find role %s", next.ID)
	}
	next.Canonicalize()
	if err := next.Validate(); err != nil {
		return nil, 0, err
	}
	next.SetHash()
	stored, index, err := propose[[]*acl.Role](ctx, a, &command.UpsertACLRoles{Roles: []*acl.Role{next}})
	if err != nil {
		return nil, 0, asInvalid(err)
	}
	return stored[0], index, nil
}

// DeleteRoles removes roles, all or none. Errors: ErrDenied unless the caller manages, NotFound.
func (a *Access) DeleteRoles(ctx context.Context, who *rights.Caller, ids ...string) (uint64, error) {
	if err := a.writes(who, "roles"); err != nil {
		return 0, err
	}
	return a.apply(ctx, &command.DeleteACLRoles{IDs: ids})
}

// Role returns a role to who manages and to who has it. Errors: ErrDenied, NotFound for who manages.
func (a *Access) Role(who *rights.Caller, roleID string) (*acl.Role, error) {
	return a.role(who, a.deps.Store.Snapshot().ACLRole(roleID))
}

// RoleByName is Role by the name.
func (a *Access) RoleByName(who *rights.Caller, name string) (*acl.Role, error) {
	return a.role(who, a.deps.Store.Snapshot().ACLRoleByName(name))
}

func (a *Access) role(who *rights.Caller, r *acl.Role) (*acl.Role, error) {
	switch {
	case manages(who) != nil && (r == nil || !hasRole(who, r.ID)):
		return nil, ErrDenied
	case r == nil:
		return nil, drover.Errorf(drover.NotFound, "ACL role not found")
	}
	return r, nil
}

// hasRole reports whether the caller's token is linked to the role.
func hasRole(who *rights.Caller, roleID string) bool {
	if who == nil {
		return false
	}
	for _, l := range who.Token.Roles {
		if l.ID == roleID {
			return true
		}
	}
	return false
}

// Roles lists the roles whose ids begin with prefix: all to who manages, to others those that they have.
func (a *Access) Roles(who *rights.Caller, prefix string) []*acl.RoleStub {
	out := []*acl.RoleStub{}
	all := manages(who) == nil
	for r := range a.deps.Store.Snapshot().ACLRoles(prefix) {
		if all || hasRole(who, r.ID) {
			out = append(out, r.Stub())
		}
	}
	return out
}
