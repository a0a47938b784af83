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
	return answer.Lister[*acl.AuthMethodStub, *acl.AuthMethodStub]{
		On: []answer.Source{{Table: tables.AuthMethods}},
		Items: func(q answer.Query, _ answer.Snapshot) iter.Seq[*acl.AuthMethodStub] {
			return slices.Values(f.Access.AuthMethods(q.Prefix))
		},
		ID:   func(m *acl.AuthMethodStub) string { return m.Name },
		View: func(m *acl.AuthMethodStub, _ answer.Snapshot) *acl.AuthMethodStub { return m },
		Sees: answer.Everybody[*acl.AuthMethodStub],
	}.Serve(f.Cluster, w, r)
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
	var m acl.AuthMethod
	if err := httpapi.DecodeJSON(r, &m); err != nil {
		return err
	}
	if name := r.PathValue("name"); name != "" && m.Name != name {
		return drover.Errorf(drover.Invalid, "ACL auth method name does not match request path")
	}
	stored, index, err := f.Access.PutAuthMethod(r.Context(), httpapi.CallerOf(r.Context()), &m)
	if err != nil {
		return err
	}
	return f.written(w, r, index, stored)
}

// deleteMethod answers DELETE /v1/acl/auth-method/NAME.
func (f *face) deleteMethod(w http.ResponseWriter, r *http.Request) error {
	index, err := f.Access.DeleteAuthMethods(r.Context(), httpapi.CallerOf(r.Context()), r.PathValue("name"))
	if err != nil {
		return err
	}
	return f.written(w, r, index, struct{}{})
}

// listRules answers GET /v1/acl/binding-rules.
func (f *face) listRules(w http.ResponseWriter, r *http.Request) error {
	return answer.Lister[*acl.BindingRuleStub, *acl.BindingRuleStub]{
		On: []answer.Source{{Table: tables.BindingRules}},
		Items: func(q answer.Query, _ answer.Snapshot) iter.Seq[*acl.BindingRuleStub] {
			return slices.Values(f.Access.BindingRules(httpapi.CallerOf(r.Context()), q.Prefix))
		},
		ID:   func(b *acl.BindingRuleStub) string { return b.ID },
		View: func(b *acl.BindingRuleStub, _ answer.Snapshot) *acl.BindingRuleStub { return b },
		Sees: answer.Everybody[*acl.BindingRuleStub], // Items asks
	}.Serve(f.Cluster, w, r)
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
	var b acl.BindingRule
	if err := httpapi.DecodeJSON(r, &b); err != nil {
		return err
	}
	if id := r.PathValue("id"); id != "" && b.ID != id {
		return drover.Errorf(drover.Invalid, "ACL binding rule ID does not match request path")
	}
	stored, index, err := f.Access.PutBindingRule(r.Context(), httpapi.CallerOf(r.Context()), &b)
	if err != nil {
		return err
	}
	return f.written(w, r, index, stored)
}

// deleteRule answers DELETE /v1/acl/binding-rule/ID.
func (f *face) deleteRule(w http.ResponseWriter, r *http.Request) error {
	index, err := f.Access.DeleteBindingRules(r.Context(), httpapi.CallerOf(r.Context()), r.PathValue("id"))
	if err != nil {
		return err
	}
	return f.written(w, r, index, struct{}{})
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
