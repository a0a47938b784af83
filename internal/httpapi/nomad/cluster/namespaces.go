package cluster

import (
	"iter"
	"net/http"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/nomad/answer"
	"github.com/drover-project/drover/internal/rights"
	"github.com/drover-project/drover/internal/tables"
	"github.com/drover-project/drover/tenancy"
)

// listNamespaces answers GET /v1/namespaces.
func (f *face) listNamespaces(w http.ResponseWriter, r *http.Request) error {
	return answer.Lister[*tenancy.Namespace, *tenancy.Namespace]{
		On:    []answer.Source{{Table: tables.Namespaces}},
		Items: func(_ answer.Query, s answer.Snapshot) iter.Seq[*tenancy.Namespace] { return s.Namespaces() },
		ID:    func(n *tenancy.Namespace) string { return n.Name },
		Keep:  answer.HasPrefix(r, func(n *tenancy.Namespace) string { return n.Name }),
		View:  func(n *tenancy.Namespace, _ answer.Snapshot) *tenancy.Namespace { return n },
		Sees:  func(c *rights.Caller, n *tenancy.Namespace) bool { return c.SeesNamespace(n.Name) },
	}.Serve(f.Cluster, w, r)
}

// readNamespace answers GET /v1/namespace/NAME.
func (f *face) readNamespace(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	if !httpapi.CallerOf(r.Context()).SeesNamespace(name) {
		return httpapi.ErrDenied
	}
	find := func(_ answer.Query, s answer.Snapshot) (*tenancy.Namespace, uint64) {
		if n := s.Namespace(name); n != nil {
			return n, n.ModifyIndex
		}
		return nil, 0
	}
	return answer.Single(f.Cluster, w, r, answer.Source{Table: tables.Namespaces}, "Namespace", find)
}

// namespaceBody is a namespace with what Nomad's has beside, which nobody here would heed.
type namespaceBody struct {
	tenancy.Namespace
	VaultConfiguration, ConsulConfiguration choice
}

// choice is which clusters of Vault or Consul jobs of a namespace may use.
type choice struct {
	Default         string
	Allowed, Denied []string
}

// free reports whether everything may be used: Nomad's own answers carry such a choice.
func (c choice) free() bool {
	return (c.Default == "" || c.Default == "default") && len(c.Allowed)+len(c.Denied) == 0
}

// unheeded refuses what restricts a namespace in Nomad and would not here. Errors: NotImplemented, with the field.
func (b *namespaceBody) unheeded() error {
	for _, part := range []struct {
		name  string
		given bool
	}{
		{"VaultConfiguration", !b.VaultConfiguration.free()},
		{"ConsulConfiguration", !b.ConsulConfiguration.free()},
	} {
		if part.given {
			return drover.Errorf(drover.NotImplemented, "namespace %q: %s is not supported: nothing would be restricted by it", b.Name, part.name)
		}
	}
	return nil
}

// upsertNamespace answers PUT /v1/namespace and PUT /v1/namespace/NAME.
func (f *face) upsertNamespace(w http.ResponseWriter, r *http.Request) error {
	var b namespaceBody
	if err := httpapi.DecodeJSON(r, &b); err != nil {
		return err
	}
	if name := r.PathValue("name"); name != "" && b.Name != name {
		return drover.Errorf(drover.Invalid, "Namespace name does not match request path")
	}
	if err := b.unheeded(); err != nil {
		return err
	}
	o, err := f.Intake.UpsertNamespace(r.Context(), &b.Namespace)
	if err != nil {
		return err
	}
	return f.Written(w, r, o, struct{}{})
}

// deleteNamespace answers DELETE /v1/namespace/NAME; one that has jobs stays.
func (f *face) deleteNamespace(w http.ResponseWriter, r *http.Request) error {
	o, err := f.Intake.DeleteNamespace(r.Context(), r.PathValue("name"))
	if err != nil {
		return err
	}
	return f.Written(w, r, o, struct{}{})
}
