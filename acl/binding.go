package acl

import (
	"time"

	"github.com/drover-project/drover/internal/validation"
)

// What a binding rule gives.
const (
	BindRole       = "role"
	BindPolicy     = "policy"
	BindManagement = "management"
)

// MaxSelector bounds the selector of a binding rule, in bytes.
const MaxSelector = 4096

// BindingRule gives those who log in with an auth method, and whom its selector takes, a role, a policy or everything.
type BindingRule struct {
	ID          string // a UUID, made by the server
	Description string
	AuthMethod  string
	Selector    string // an expression over the mapped claims; "" = everybody
	BindType    string // BindRole, BindPolicy or BindManagement
	BindName    string // of the role or policy; may have ${value.NAME} and ${list.NAME}
	CreateTime  time.Time
	ModifyTime  time.Time
	CreateIndex uint64
	ModifyIndex uint64
}

// BindingRuleStub is a binding rule in a list.
type BindingRuleStub struct {
	ID          string
	Description string
	AuthMethod  string
	CreateIndex uint64
	ModifyIndex uint64
}

// Stub returns the rule as lists have it.
func (b *BindingRule) Stub() *BindingRuleStub {
	return &BindingRuleStub{
		ID: b.ID, Description: b.Description, AuthMethod: b.AuthMethod, CreateIndex: b.CreateIndex, ModifyIndex: b.ModifyIndex,
	}
}

// Validate reports everything that is wrong with the rule but its selector and the template of its name. Errors: Invalid.
func (b *BindingRule) Validate() error {
	v := &validation.Report{}
	text(v, "Description", b.Description, MaxDescription)
	text(v, "Selector", b.Selector, MaxSelector)
	text(v, "BindName", b.BindName, MaxDescription)
	v.Check(b.AuthMethod != "", "AuthMethod", "name the auth method whose logins the rule is for")
	switch b.BindType {
	case BindRole, BindPolicy:
		v.Check(b.BindName != "", "BindName", "name the %s that the rule gives", b.BindType)
	case BindManagement:
		v.Check(b.BindName == "", "BindName", "must be empty where BindType is %q", BindManagement)
	default:
		v.Addf("BindType", "must be %q, %q or %q, got %q", BindRole, BindPolicy, BindManagement, b.BindType)
	}
	return invalid("binding rule", v)
}
