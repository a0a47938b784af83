package native

import (
	"net/http"
	"slices"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/policy"
)

// drainOperations are those on nodes that are to be drained.
func (f *Face) drainOperations() []operation {
	return []operation{{
		Route: httpapi.Route{
			Pattern: "GET /v1/drain/plan", Where: httpapi.Reads, Handle: f.planDrain,
			Need: httpapi.Level(policy.Node, policy.Read).Showing("allocations of jobs that the caller may read"),
		},
		summary: "What a drain of a node would do, as things are now: where each allocation would go, or why it would not fit. " +
			"Nothing is changed",
		query: []param{
			{Name: drover.DrainPlanNode, Kind: "string", About: "the id of the node"},
			{Name: drover.DrainPlanIgnoreSystem, Kind: "boolean", About: "leave system jobs"},
			{Name: drover.DrainPlanMoveBatch, Kind: "boolean", About: "begin batch work anew on other nodes"},
		},
		out: drover.DrainPlan{},
	}}
}

// planDrain answers GET /v1/drain/plan. Errors: Invalid, NotFound, Exhausted.
func (f *Face) planDrain(w http.ResponseWriter, r *http.Request) error {
	if f.PlanDrain == nil {
		return drover.Errorf(drover.NotImplemented, "this agent is a node only: ask a server")
	}
	id := r.URL.Query().Get(drover.DrainPlanNode)
	if id == "" {
		return drover.Errorf(drover.Invalid, "node_id: name the node")
	}
	var spec drover.DrainSpec
	var err error
	if spec.IgnoreSystemJobs, err = httpapi.BoolParam(r, drover.DrainPlanIgnoreSystem, false); err != nil {
		return err
	}
	if spec.MoveBatch, err = httpapi.BoolParam(r, drover.DrainPlanMoveBatch, false); err != nil {
		return err
	}
	plan, err := f.PlanDrain(r.Context(), id, spec)
	if err != nil {
		return err
	}
	caller, all := httpapi.CallerOf(r.Context()), len(plan.Moves)
	plan.Moves = slices.DeleteFunc(plan.Moves, func(m drover.DrainMove) bool { return !caller.Namespace(m.Namespace, policy.ReadJob) })
	plan.Hidden = all - len(plan.Moves)
	return httpapi.WriteJSON(w, r, http.StatusOK, plan)
}
