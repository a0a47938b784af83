package jobs

import (
	"iter"
	"net/http"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/nomad/answer"
	"github.com/drover-project/drover/internal/policy"
	"github.com/drover-project/drover/internal/tables"
)

// ScalingPolicies derives the policies of a namespace ("*" = all) from the groups that have a scaling block. A policy's
// id is namespace/job/group.
func ScalingPolicies(s answer.Snapshot, namespace string) iter.Seq[*drover.ScalingPolicy] {
	return func(yield func(*drover.ScalingPolicy) bool) {
		for j := range s.Jobs(namespace, "") {
			if j.Stop {
				continue
			}
			for _, g := range j.TaskGroups {
				if g.Scaling != nil && !yield(policyOf(j, g)) {
					return
				}
			}
		}
	}
}

// policyOf returns a copy of the group's scaling block, completed with what only the stored policy of Nomad has.
// The job in the state must not change, hence the copy. Its type is "horizontal" unless the block has another.
func policyOf(j *drover.Job, g *drover.TaskGroup) *drover.ScalingPolicy {
	p := *g.Scaling
	p.ID, p.Namespace = j.Namespace+"/"+j.ID+"/"+g.Name, j.Namespace
	p.Target = map[string]string{"Namespace": j.Namespace, "Job": j.ID, "Group": g.Name}
	p.CreateIndex, p.ModifyIndex = j.CreateIndex, j.JobModifyIndex
	if p.Type == "" {
		p.Type = "horizontal"
	}
	return &p
}

// listScalingPolicies answers GET /v1/scaling/policies; job and type select.
func (f *face) listScalingPolicies(w http.ResponseWriter, r *http.Request) error {
	type stub struct {
		ID          string
		Enabled     bool
		Type        string
		Target      map[string]string
		CreateIndex uint64
		ModifyIndex uint64
	}
	job, kind := r.URL.Query().Get("job"), r.URL.Query().Get("type")
	return answer.Lister[*drover.ScalingPolicy, stub]{
		On: []answer.Source{{Table: tables.Jobs}},
		Items: func(q answer.Query, s answer.Snapshot) iter.Seq[*drover.ScalingPolicy] {
			return ScalingPolicies(s, q.Namespace)
		},
		Keep: func(p *drover.ScalingPolicy) bool {
			return (job == "" || p.Target["Job"] == job) && (kind == "" || p.Type == kind)
		},
		ID:   func(p *drover.ScalingPolicy) string { return p.ID },
		Sees: answer.In(policy.ListScalingPolicies, func(p *drover.ScalingPolicy) string { return p.Namespace }),
		View: func(p *drover.ScalingPolicy, _ answer.Snapshot) stub {
			return stub{p.ID, p.Enabled == nil || *p.Enabled, p.Type, p.Target, p.CreateIndex, p.ModifyIndex}
		},
	}.Serve(f.Cluster, w, r)
}

// readScalingPolicy answers GET /v1/scaling/policy/ID.
func (f *face) readScalingPolicy(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	// The id has the namespace in it, so that the query's does not matter.
	find := func(_ answer.Query, s answer.Snapshot) (*drover.ScalingPolicy, uint64) {
		for p := range ScalingPolicies(s, "*") {
			if p.ID == id && httpapi.CallerOf(r.Context()).Namespace(p.Namespace, policy.ReadScalingPolicy) {
				return p, p.ModifyIndex
			}
		}
		return nil, 0
	}
	return answer.Single(f.Cluster, w, r, answer.Source{Table: tables.Jobs}, "policy", find)
}
