package evaluations

import (
	"iter"
	"maps"
	"net/http"
	"slices"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/nomad/allocations"
	"github.com/drover-project/drover/internal/httpapi/nomad/answer"
	"github.com/drover-project/drover/internal/policy"
	"github.com/drover-project/drover/internal/rights"
	"github.com/drover-project/drover/internal/tables"
)

// ListDeployments lists the deployments that items yields.
func ListDeployments(
	items func(answer.Query, answer.Snapshot) iter.Seq[*drover.Deployment],
) answer.Lister[*drover.Deployment, *drover.Deployment] {
	return answer.Lister[*drover.Deployment, *drover.Deployment]{
		On:      []answer.Source{{Table: tables.Deployments}},
		Items:   items,
		ID:      func(d *drover.Deployment) string { return d.ID },
		Created: func(d *drover.Deployment) uint64 { return d.CreateIndex },
		View:    func(d *drover.Deployment, _ answer.Snapshot) *drover.Deployment { return d },
		Sees:    seesDeployment,
	}
}

// seesDeployment reports whether the caller may read the deployment.
func seesDeployment(c *rights.Caller, d *drover.Deployment) bool {
	return c.Namespace(d.Namespace, policy.ReadJob)
}

// listDeployments answers GET /v1/deployments.
func (f *face) listDeployments(w http.ResponseWriter, r *http.Request) error {
	return ListDeployments(func(q answer.Query, s answer.Snapshot) iter.Seq[*drover.Deployment] {
		return s.Deployments(q.Namespace, q.Prefix)
	}).Serve(f.Cluster, w, r)
}

// readDeployment answers GET /v1/deployment/ID.
func (f *face) readDeployment(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	find := func(_ answer.Query, s answer.Snapshot) (*drover.Deployment, uint64) {
		if d := s.Deployment(id); d != nil && seesDeployment(httpapi.CallerOf(r.Context()), d) {
			return d, d.ModifyIndex
		}
		return nil, 0
	}
	return answer.Single(f.Cluster, w, r, answer.Source{Table: tables.Deployments, Key: id}, "deployment", find)
}

// deploymentAllocations answers GET /v1/deployment/allocations/ID; of an unknown deployment there are none.
func (f *face) deploymentAllocations(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	l := allocations.Stubs(func(_ answer.Query, s answer.Snapshot) iter.Seq[*drover.Allocation] {
		d := s.Deployment(id)
		if d == nil {
			return func(func(*drover.Allocation) bool) {}
		}
		return s.AllocationsByJob(d.Namespace, d.JobID)
	}, true)
	l.Keep = func(a *drover.Allocation) bool { return a.DeploymentID == id }
	return l.Serve(f.Cluster, w, r)
}

// steering is what an action on a deployment needs in its namespace.
var steering = map[string]policy.Capability{
	"promote": policy.PromoteDeployment, "fail": policy.FailDeployment, "pause": policy.PauseDeployment,
	"unblock": policy.UnblockDeployment, "allocation-health": policy.SetAllocHealth,
}

// steers is what changing a deployment needs.
func steers(r *http.Request) httpapi.Need {
	if c, known := steering[r.PathValue("action")]; known {
		return httpapi.OfObject(c)
	}
	return httpapi.Need{}
}

// casesOfSteering lists what each action needs.
func casesOfSteering() (cases []httpapi.Case) {
	for _, action := range slices.Sorted(maps.Keys(steering)) {
		cases = append(cases, httpapi.Case{Path: "PUT,POST /v1/deployment/" + action + "/{id}", Need: httpapi.OfObject(steering[action])})
	}
	return cases
}

// changeDeployment answers PUT /v1/deployment/{promote,fail,pause,unblock,allocation-health}/{id}.
func (f *face) changeDeployment(w http.ResponseWriter, r *http.Request) error {
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
	if d := f.State.Snapshot().Deployment(id); d != nil { // of one that is not known the intake says so
		if need, known := steering[action]; known {
			if err := httpapi.Allow(ctx, d.Namespace, need); err != nil {
				return err
			}
		}
	}
	var o drover.Outcome
	var err error
	switch action {
	case "promote":
		// Exactly one of both must be given. No groups mean all to the intake, hence a forgotten field must not get
		// there.
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
	return f.Written(w, r, o, struct {
		EvalID                string
		EvalCreateIndex       uint64
		DeploymentModifyIndex uint64
		RevertedJobVersion    *uint64
		Index                 uint64
	}{o.EvalID, o.EvalCreateIndex, o.DeploymentModifyIndex, o.RevertedJobVersion, o.Index})
}
