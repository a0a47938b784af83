package cluster

import (
	"iter"
	"net/http"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/nomad/answer"
	"github.com/drover-project/drover/internal/tables"
)

// listNamespaces answers GET /v1/namespaces.
func (f *face) listNamespaces(w http.ResponseWriter, r *http.Request) error {
	return answer.Lister[*drover.Namespace, *drover.Namespace]{
		On:    []answer.Source{{Table: tables.Namespaces}},
		Items: func(_ answer.Query, s answer.Snapshot) iter.Seq[*drover.Namespace] { return s.Namespaces() },
		ID:    func(n *drover.Namespace) string { return n.Name },
		Keep:  answer.HasPrefix(r, func(n *drover.Namespace) string { return n.Name }),
		View:  func(n *drover.Namespace, _ answer.Snapshot) *drover.Namespace { return n },
	}.Serve(f.Cluster, w, r)
}

// readNamespace answers GET /v1/namespace/NAME.
func (f *face) readNamespace(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	find := func(_ answer.Query, s answer.Snapshot) (*drover.Namespace, uint64) {
		if n := s.Namespace(name); n != nil {
			return n, n.ModifyIndex
		}
		return nil, 0
	}
	return answer.Single(f.Cluster, w, r, answer.Source{Table: tables.Namespaces}, "Namespace", find)
}

// upsertNamespace answers PUT /v1/namespace and PUT /v1/namespace/NAME.
func (f *face) upsertNamespace(w http.ResponseWriter, r *http.Request) error {
	var n drover.Namespace
	if err := httpapi.DecodeJSON(r, &n); err != nil {
		return err
	}
	if name := r.PathValue("name"); name != "" && n.Name != name {
		return drover.Errorf(drover.Invalid, "Namespace name does not match request path")
	}
	o, err := f.Intake.UpsertNamespace(r.Context(), &n)
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
