package nodes

import (
	"iter"
	"net/http"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/nomad/answer"
	"github.com/drover-project/drover/internal/policy"
	"github.com/drover-project/drover/internal/rights"
	"github.com/drover-project/drover/internal/tables"
)

// listNodePools answers GET /v1/node/pools.
func (f *face) listNodePools(w http.ResponseWriter, r *http.Request) error {
	return answer.Lister[*drover.NodePool, *poolView]{
		On:    []answer.Source{{Table: tables.NodePools}},
		Items: func(_ answer.Query, s answer.Snapshot) iter.Seq[*drover.NodePool] { return s.NodePools() },
		ID:    func(p *drover.NodePool) string { return p.Name },
		Keep:  answer.HasPrefix(r, func(p *drover.NodePool) string { return p.Name }),
		View:  func(p *drover.NodePool, _ answer.Snapshot) *poolView { return viewPool(p) },
		Sees:  func(c *rights.Caller, p *drover.NodePool) bool { return c.NodePool(p.Name, policy.ReadPool) },
	}.Serve(f.Cluster, w, r)
}

// upsertNodePool answers PUT /v1/node/pools and PUT /v1/node/pool/NAME.
func (f *face) upsertNodePool(w http.ResponseWriter, r *http.Request) error {
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
	if !httpapi.CallerOf(r.Context()).NodePool(p.Name, policy.WritePool) {
		return httpapi.ErrDenied
	}
	o, err := f.Intake.UpsertNodePool(r.Context(), &p)
	if err != nil {
		return err
	}
	return f.Written(w, r, o, struct{}{})
}

// readNodePool answers GET /v1/node/pool/NAME.
func (f *face) readNodePool(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	find := func(_ answer.Query, s answer.Snapshot) (*poolView, uint64) {
		if p := s.NodePool(name); p != nil {
			return viewPool(p), p.ModifyIndex
		}
		return nil, 0
	}
	return answer.Single(f.Cluster, w, r, answer.Source{Table: tables.NodePools}, "node pool", find)
}

// deleteNodePool answers DELETE /v1/node/pool/NAME.
func (f *face) deleteNodePool(w http.ResponseWriter, r *http.Request) error {
	o, err := f.Intake.DeleteNodePool(r.Context(), r.PathValue("name"))
	if err != nil {
		return err
	}
	return f.Written(w, r, o, struct{}{})
}

// nodePoolNodes answers GET /v1/node/pool/NAME/nodes; the pool "all" has every node.
func (f *face) nodePoolNodes(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	if !httpapi.CallerOf(r.Context()).NodePool(name, policy.ReadPool) {
		return httpapi.ErrDenied
	}
	l := f.nodeLister(false, false)
	l.Keep = func(n *drover.Node) bool { return name == drover.AllNodePool || n.NodePool == name }
	return l.Serve(f.Cluster, w, r)
}

// nodePoolJobs answers GET /v1/node/pool/NAME/jobs; the pool "all" has every job.
func (f *face) nodePoolJobs(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	if !httpapi.CallerOf(r.Context()).NodePool(name, policy.ReadPool) {
		return httpapi.ErrDenied
	}
	return answer.Lister[*drover.Job, *drover.JobListStub]{
		On:    []answer.Source{{Table: tables.Jobs}, {Table: tables.JobSummaries}},
		Items: func(q answer.Query, s answer.Snapshot) iter.Seq[*drover.Job] { return s.Jobs(q.Namespace, q.Prefix) },
		Keep:  func(j *drover.Job) bool { return name == drover.AllNodePool || j.NodePool == name },
		ID:    func(j *drover.Job) string { return j.Namespace + "." + j.ID },
		Sees:  answer.In(policy.ReadJob, func(j *drover.Job) string { return j.Namespace }),
		View: func(j *drover.Job, s answer.Snapshot) *drover.JobListStub {
			return j.Stub(s.JobSummary(j.Namespace, j.ID))
		},
	}.Serve(f.Cluster, w, r)
}

// poolView is a node pool; what people write as "720h" is a number in answers.
type poolView struct {
	*drover.NodePool
	NodeIdentityTTL time.Duration
}

// viewPool copies nothing: the answer shares the stored pool, which must not change.
func viewPool(p *drover.NodePool) *poolView {
	ttl, _ := time.ParseDuration(p.NodeIdentityTTL) // checked when it was written; "" is none
	return &poolView{p, ttl}
}
