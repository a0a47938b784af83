package nomad

import (
	"iter"
	"net/http"
	"strings"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/tables"
)

func (f *Face) listNodePools(w http.ResponseWriter, r *http.Request) error {
	return lister[*drover.NodePool, *poolView]{
		on:    []source{{table: tables.NodePools}},
		items: func(_ query, s Snapshot) iter.Seq[*drover.NodePool] { return s.NodePools() },
		id:    func(p *drover.NodePool) string { return p.Name },
		keep:  hasPrefix(r, func(p *drover.NodePool) string { return p.Name }),
		view:  func(p *drover.NodePool, _ Snapshot) *poolView { return viewPool(p) },
	}.serve(f, w, r)
}

// hasPrefix keeps what begins with the query's prefix, for tables that are not iterated by it.
func hasPrefix[T any](r *http.Request, name func(T) string) func(T) bool {
	prefix := r.URL.Query().Get("prefix")
	return func(v T) bool { return strings.HasPrefix(name(v), prefix) }
}

func (f *Face) upsertNodePool(w http.ResponseWriter, r *http.Request) error {
	var b struct {
		drover.NodePool
		NodeIdentityTTL time.Duration // a text or a number, as all durations
	}
	if err := httpapi.DecodeJSON(r, &b); err != nil {
		return err
	}
	p := b.NodePool
	if b.NodeIdentityTTL != 0 {
		p.NodeIdentityTTL = b.NodeIdentityTTL.String()
	}
	if name := r.PathValue("name"); name != "" && p.Name != name {
		return drover.Errorf(drover.Invalid, "Node pool name does not match name in request path")
	}
	o, err := f.Intake.UpsertNodePool(r.Context(), &p)
	if err != nil {
		return err
	}
	return f.written(w, r, o, struct{}{})
}

func (f *Face) readNodePool(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	return single(f, w, r, source{table: tables.NodePools}, "node pool", func(_ query, s Snapshot) (*poolView, uint64) {
		if p := s.NodePool(name); p != nil {
			return viewPool(p), p.ModifyIndex
		}
		return nil, 0
	})
}

func (f *Face) deleteNodePool(w http.ResponseWriter, r *http.Request) error {
	o, err := f.Intake.DeleteNodePool(r.Context(), r.PathValue("name"))
	if err != nil {
		return err
	}
	return f.written(w, r, o, struct{}{})
}

func (f *Face) nodePoolNodes(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	l := f.nodeLister(false, false)
	l.keep = func(n *drover.Node) bool { return name == drover.AllNodePool || n.NodePool == name }
	return l.serve(f, w, r)
}

func (f *Face) nodePoolJobs(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	return lister[*drover.Job, *drover.JobListStub]{
		on:    []source{{table: tables.Jobs}, {table: tables.JobSummaries}},
		items: func(q query, s Snapshot) iter.Seq[*drover.Job] { return s.Jobs(q.namespace, q.prefix) },
		keep:  func(j *drover.Job) bool { return name == drover.AllNodePool || j.NodePool == name },
		id:    func(j *drover.Job) string { return j.Namespace + "." + j.ID },
		view: func(j *drover.Job, s Snapshot) *drover.JobListStub {
			return j.Stub(s.JobSummary(j.Namespace, j.ID))
		},
	}.serve(f, w, r)
}
