package acl

import (
	"net/http"

	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/nomad/answer"
	"github.com/drover-project/drover/internal/rights"
	"github.com/drover-project/drover/internal/tables"
)

// loginRoutes are those of auth methods, binding rules and logins. Who logs in has no token yet.
func (f *face) loginRoutes() []httpapi.Route {
	logins := httpapi.Leader.Of(f.regionOfLogin)
	return []httpapi.Route{
		{Pattern: "GET /v1/acl/auth-methods", Where: httpapi.Reads, Need: httpapi.Nothing, Handle: f.listMethods},
		{Pattern: "PUT,POST /v1/acl/auth-method", Where: httpapi.Authority, Need: httpapi.Management, Handle: f.writeMethod},
		{Pattern: "GET /v1/acl/auth-method/{name}", Where: httpapi.Reads, Need: httpapi.Management, Handle: f.readMethod},
		{Pattern: "PUT,POST /v1/acl/auth-method/{name}", Where: httpapi.Authority, Need: httpapi.Management, Handle: f.writeMethod},
		{Pattern: "DELETE /v1/acl/auth-method/{name}", Where: httpapi.Authority, Need: httpapi.Management, Handle: f.deleteMethod},

		{Pattern: "GET /v1/acl/binding-rules", Where: httpapi.Reads, Need: httpapi.Management, Handle: f.listRules},
		{Pattern: "PUT,POST /v1/acl/binding-rule", Where: httpapi.Authority, Need: httpapi.Management, Handle: f.writeRule},
		{Pattern: "GET /v1/acl/binding-rule/{id}", Where: httpapi.Reads, Need: httpapi.Management, Handle: f.readRule},
		{Pattern: "PUT,POST /v1/acl/binding-rule/{id}", Where: httpapi.Authority, Need: httpapi.Management, Handle: f.writeRule},
		{Pattern: "DELETE /v1/acl/binding-rule/{id}", Where: httpapi.Authority, Need: httpapi.Management, Handle: f.deleteRule},

		{Pattern: "PUT,POST /v1/acl/login", Where: logins, Need: httpapi.Nothing, Handle: f.login},
		{Pattern: "PUT,POST /v1/acl/oidc/auth-url", Where: logins, Need: httpapi.Nothing, Handle: f.authURL},
		{Pattern: "PUT,POST /v1/acl/oidc/complete-auth", Where: logins, Need: httpapi.Nothing, Handle: f.completeAuth},
	}
}

// regionOfLogin is where a login goes: to the authoritative region if it gives a token that all regions know.
func (f *face) regionOfLogin(r *http.Request) (string, error) {
	name, err := httpapi.BodyKey("AuthMethodName")(r)
	if err != nil || !f.Access.IsGlobalMethod(name) {
		return "", err
	}
	return f.Authority, nil
}

// listMethods answers GET /v1/acl/auth-methods.
func (f *face) listMethods(w http.ResponseWriter, r *http.Request) error {
	id := func(m *acl.AuthMethodStub) string { return m.Name }
	all := func(_ *rights.Caller, prefix string) []*acl.AuthMethodStub { return f.Access.AuthMethods(prefix) }
	return list(f, w, r, id, all, tables.AuthMethods)
}

// readMethod answers GET /v1/acl/auth-method/NAME.
func (f *face) readMethod(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	on := answer.Source{Table: tables.AuthMethods, Key: name}
	read := func(who *rights.Caller) (*acl.AuthMethod, error) { return f.Access.AuthMethod(who, name) }
	return single(f, w, r, on, read, func(m *acl.AuthMethod) uint64 { return m.ModifyIndex })
}

// writeMethod answers PUT /v1/acl/auth-method and PUT /v1/acl/auth-method/NAME.
func (f *face) writeMethod(w http.ResponseWriter, r *http.Request) error {
	name := func(m *acl.AuthMethod) string { return m.Name }
	return write(f, w, r, "name", name, "ACL auth method name does not match request path", f.Access.PutAuthMethod)
}

// deleteMethod answers DELETE /v1/acl/auth-method/NAME.
func (f *face) deleteMethod(w http.ResponseWriter, r *http.Request) error {
	return f.remove(w, r, "name", f.Access.DeleteAuthMethods)
}

// listRules answers GET /v1/acl/binding-rules.
func (f *face) listRules(w http.ResponseWriter, r *http.Request) error {
	id := func(b *acl.BindingRuleStub) string { return b.ID }
	return list(f, w, r, id, f.Access.BindingRules, tables.BindingRules)
}

// readRule answers GET /v1/acl/binding-rule/ID.
func (f *face) readRule(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	on := answer.Source{Table: tables.BindingRules, Key: id}
	read := func(who *rights.Caller) (*acl.BindingRule, error) { return f.Access.BindingRule(who, id) }
	return single(f, w, r, on, read, func(b *acl.BindingRule) uint64 { return b.ModifyIndex })
}

// writeRule answers PUT /v1/acl/binding-rule, which makes one, and PUT /v1/acl/binding-rule/ID.
func (f *face) writeRule(w http.ResponseWriter, r *http.Request) error {
	id := func(b *acl.BindingRule) string { return b.ID }
	return write(f, w, r, "id", id, "ACL binding rule ID does not match request path", f.Access.PutBindingRule)
}

// deleteRule answers DELETE /v1/acl/binding-rule/ID.
func (f *face) deleteRule(w http.ResponseWriter, r *http.Request) error {
	return f.remove(w, r, "id", f.Access.DeleteBindingRules)
}

// login answers PUT /v1/acl/login.
func (f *face) login(w http.ResponseWriter, r *http.Request) error {
	var b acl.LoginRequest
	if err := httpapi.DecodeJSON(r, &b); err != nil {
		return err
	}
	t, index, err := f.Access.Login(r.Context(), b)
	if err != nil {
		return err
	}
	return f.written(w, r, index, t)
}

// authURL answers PUT /v1/acl/oidc/auth-url.
func (f *face) authURL(w http.ResponseWriter, r *http.Request) error {
	var b acl.AuthURLRequest
	if err := httpapi.DecodeJSON(r, &b); err != nil {
		return err
	}
	u, err := f.Access.AuthURL(r.Context(), b)
	if err != nil {
		return err
	}
	return httpapi.WriteJSON(w, r, http.StatusOK, acl.AuthURL{AuthURL: u})
}

// completeAuth answers PUT /v1/acl/oidc/complete-auth.
func (f *face) completeAuth(w http.ResponseWriter, r *http.Request) error {
	var b acl.CompleteAuthRequest
	if err := httpapi.DecodeJSON(r, &b); err != nil {
		return err
	}
	t, index, err := f.Access.CompleteAuth(r.Context(), b)
	if err != nil {
		return err
	}
	return f.written(w, r, index, t)
}
