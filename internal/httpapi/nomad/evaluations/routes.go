package evaluations

import (
	"context"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/nomad/answer"
	"github.com/drover-project/drover/internal/policy"
)

// Intake steers deployments and deletes evaluations.
type Intake interface {
	// PromoteDeployment promotes the canaries of the groups; of all groups if there are none given.
	PromoteDeployment(ctx context.Context, id string, groups []string) (drover.Outcome, error)
	FailDeployment(ctx context.Context, id string) (drover.Outcome, error)
	PauseDeployment(ctx context.Context, id string, pause bool) (drover.Outcome, error)
	UnblockDeployment(ctx context.Context, id string) (drover.Outcome, error)
	SetAllocHealth(ctx context.Context, deploymentID string, healthy, unhealthy []string) (drover.Outcome, error)
	// DeleteEvaluations deletes evaluations that have ended.
	DeleteEvaluations(ctx context.Context, ids []string) (drover.Outcome, error)
}

// face answers the group's requests.
type face struct {
	*answer.Cluster
	Intake Intake
}

// Routes lists the group's routes.
func Routes(c *answer.Cluster, intake Intake) []httpapi.Route {
	f := &face{c, intake}
	lists, reads := httpapi.InNamespace(policy.ReadJob), httpapi.OfObject(policy.ReadJob)
	return []httpapi.Route{
		{Pattern: "GET /v1/evaluations", Where: httpapi.Reads, Need: lists, Handle: f.listEvaluations},
		{Pattern: "DELETE /v1/evaluations", Where: httpapi.Leader, Need: httpapi.Management, Handle: f.deleteEvaluations},
		{Pattern: "GET /v1/evaluations/count", Where: httpapi.Reads, Need: lists, Handle: f.countEvaluations},
		{Pattern: "GET /v1/evaluation/{id}", Where: httpapi.Reads, Need: reads, Handle: f.readEvaluation},
		{Pattern: "GET /v1/evaluation/{id}/allocations", Where: httpapi.Reads, Need: reads, Handle: f.evaluationAllocations},

		{Pattern: "GET /v1/deployments", Where: httpapi.Reads, Need: lists, Handle: f.listDeployments},
		{Pattern: "GET /v1/deployment/{id}", Where: httpapi.Reads, Need: reads, Handle: f.readDeployment},
		{Pattern: "GET /v1/deployment/allocations/{id}", Where: httpapi.Reads, Need: reads, Handle: f.deploymentAllocations},
		{
			Pattern: "PUT,POST /v1/deployment/{action}/{id}", Where: httpapi.Leader,
			Need: httpapi.Depends(steers, casesOfSteering()...), Handle: f.changeDeployment,
		},
	}
}
