package nomad

import (
	"iter"
	"net/http"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/tables"
)

func deploymentLister(items func(query, Snapshot) iter.Seq[*drover.Deployment]) lister[*drover.Deployment, *drover.Deployment] {
	return lister[*drover.Deployment, *drover.Deployment]{
		on:      []source{{table: tables.Deployments}},
		items:   items,
		id:      func(d *drover.Deployment) string { return d.ID },
		created: func(d *drover.Deployment) uint64 { return d.CreateIndex },
		view:    func(d *drover.Deployment, _ Snapshot) *drover.Deployment { return d },
	}
}

func (f *Face) listDeployments(w http.ResponseWriter, r *http.Request) error {
	return deploymentLister(func(q query, s Snapshot) iter.Seq[*drover.Deployment] {
		return s.Deployments(q.namespace, q.prefix)
	}).serve(f, w, r)
}

func (f *Face) readDeployment(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	return single(f, w, r, source{table: tables.Deployments, key: id}, "deployment", func(_ query, s Snapshot) (*drover.Deployment, uint64) {
		if d := s.Deployment(id); d != nil {
			return d, d.ModifyIndex
		}
		return nil, 0
	})
}

func (f *Face) deploymentAllocations(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	l := stubLister(func(_ query, s Snapshot) iter.Seq[*drover.Allocation] {
		d := s.Deployment(id)
		if d == nil {
			return func(func(*drover.Allocation) bool) {}
		}
		return s.AllocationsByJob(d.Namespace, d.JobID)
	}, true)
	l.keep = func(a *drover.Allocation) bool { return a.DeploymentID == id }
	return l.serve(f, w, r)
}

// changeDeployment answers PUT /v1/deployment/{promote,fail,pause,unblock,allocation-health}/{id}.
func (f *Face) changeDeployment(w http.ResponseWriter, r *http.Request) error {
	var b struct {
		DeploymentID           string
		All                    bool
		Groups                 []string
		Pause                  bool
		HealthyAllocationIDs   []string
		UnhealthyAllocationIDs []string
	}
	action, id := r.PathValue("action"), r.PathValue("id")
	if err := httpapi.DecodeOptionalJSON(r, &b); err != nil {
		return err
	}
	if b.DeploymentID != "" && b.DeploymentID != id {
		return drover.Errorf(drover.Invalid, "Deployment ID does not match")
	}
	ctx := r.Context()
	var o drover.Outcome
	var err error
	switch action {
	case "promote":
		if b.All == (len(b.Groups) > 0) {
			return drover.Errorf(drover.Invalid, "either All or Groups must be given to promote")
		}
		o, err = f.Intake.PromoteDeployment(ctx, id, b.Groups)
	case "fail":
		o, err = f.Intake.FailDeployment(ctx, id)
	case "pause":
		o, err = f.Intake.PauseDeployment(ctx, id, b.Pause)
	case "unblock":
		o, err = f.Intake.UnblockDeployment(ctx, id)
	case "allocation-health":
		if len(b.HealthyAllocationIDs)+len(b.UnhealthyAllocationIDs) == 0 {
			return drover.Errorf(drover.Invalid, "must specify at least one healthy or unhealthy allocation")
		}
		o, err = f.Intake.SetAllocHealth(ctx, id, b.HealthyAllocationIDs, b.UnhealthyAllocationIDs)
	default:
		return drover.Errorf(drover.NotFound, "no such deployment action: %q", action)
	}
	if err != nil {
		return err
	}
	return f.written(w, r, o, struct {
		EvalID                string
		EvalCreateIndex       uint64
		DeploymentModifyIndex uint64
		RevertedJobVersion    *uint64
		Index                 uint64
	}{o.EvalID, o.EvalCreateIndex, o.DeploymentModifyIndex, o.RevertedJobVersion, o.Index})
}
