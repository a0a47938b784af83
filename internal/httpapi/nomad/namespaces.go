package nomad

import (
	"iter"
	"net/http"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/tables"
)

func (f *Face) listNamespaces(w http.ResponseWriter, r *http.Request) error {
	return lister[*drover.Namespace, *drover.Namespace]{
		on:    []source{{table: tables.Namespaces}},
		items: func(_ query, s Snapshot) iter.Seq[*drover.Namespace] { return s.Namespaces() },
		id:    func(n *drover.Namespace) string { return n.Name },
		keep:  hasPrefix(r, func(n *drover.Namespace) string { return n.Name }),
		view:  func(n *drover.Namespace, _ Snapshot) *drover.Namespace { return n },
	}.serve(f, w, r)
}

func (f *Face) readNamespace(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	return single(f, w, r, source{table: tables.Namespaces}, "Namespace", func(_ query, s Snapshot) (*drover.Namespace, uint64) {
		if n := s.Namespace(name); n != nil {
			return n, n.ModifyIndex
		}
		return nil, 0
	})
}

func (f *Face) upsertNamespace(w http.ResponseWriter, r *http.Request) error {
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
	return f.written(w, r, o, struct{}{})
}

func (f *Face) deleteNamespace(w http.ResponseWriter, r *http.Request) error {
	o, err := f.Intake.DeleteNamespace(r.Context(), r.PathValue("name"))
	if err != nil {
		return err
	}
	return f.written(w, r, o, struct{}{})
}
