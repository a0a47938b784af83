package acl

import (
	"fmt"
	"slices"

	"github.com/drover-project/drover/internal/validation"
)

// Role is a named list of policies that tokens are linked to, so that the rights of many tokens change at one place.
type Role struct {
	ID          string // a UUID, made by the server
	Name        string // unique
	Description string
	Policies    []*RolePolicy
	Hash        []byte `json:",omitempty"` // of what the role is
	CreateIndex uint64
	ModifyIndex uint64
}

// RolePolicy links a role to a policy.
type RolePolicy struct{ Name string }

// RoleStub is a role in a list.
type RoleStub struct {
	ID          string
	Name        string
	Description string
	Policies    []*RolePolicy
	Hash        []byte `json:",omitempty"`
	CreateIndex uint64
	ModifyIndex uint64
}

// Stub returns the role as lists have it.
func (r *Role) Stub() *RoleStub {
	return &RoleStub{
		ID: r.ID, Name: r.Name, Description: r.Description, Policies: r.Policies, Hash: r.Hash,
		CreateIndex: r.CreateIndex, ModifyIndex: r.ModifyIndex,
	}
}

// Copy returns a role of which every part may be changed.
func (r *Role) Copy() *Role {
	c := *r
	c.Hash, c.Policies = slices.Clone(r.Hash), slices.Clone(r.Policies)
	for i, p := range c.Policies {
		c.Policies[i] = new(*p)
	}
	return &c
}

// Canonicalize leaves each policy once, in the order given, and drops what is nil.
func (r *Role) Canonicalize() {
	seen := map[string]bool{}
	r.Policies = slices.DeleteFunc(r.Policies, func(p *RolePolicy) bool {
		if p == nil || seen[p.Name] {
			return true
		}
		seen[p.Name] = true
		return false
	})
}

// Validate reports everything that is wrong with the role. Errors: Invalid.
func (r *Role) Validate() error {
	v := &validation.Report{}
	name(v, "Name", r.Name)
	text(v, "Description", r.Description, MaxDescription)
	v.Check(len(r.Policies) > 0, "Policies", "at least one policy should be specified")
	v.Check(len(r.Policies) <= MaxLinks, "Policies", "a role has at most %d policies", MaxLinks)
	for i, p := range r.Policies {
		if path := fmt.Sprintf("Policies[%d]", i); p == nil {
			v.Addf(path, "name the policy")
		} else {
			name(v, path+".Name", p.Name)
		}
	}
	return invalid("role", v)
}
