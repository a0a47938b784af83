package command

import "github.com/drover-project/drover"

// UpsertDeployment stores a deployment. Result: nil.
type UpsertDeployment struct {
	Deployment *drover.Deployment
	Evals      []*drover.Evaluation
	Time       int64
}

// UpdateDeploymentStatus changes a deployment's status, and with Job registers that job in the same entry (a revert).
// Result: nil. Errors: NotFound, Conflict if the deployment is over.
type UpdateDeploymentStatus struct {
	Update *drover.DeploymentStatusUpdate
	Job    *drover.Job
	Evals  []*drover.Evaluation
	Time   int64
}

// SetAllocHealth sets the health of a deployment's allocations by hand or by deadline, and optionally its status.
// Result: nil. Errors: NotFound, Conflict if the deployment is over.
type SetAllocHealth struct {
	DeploymentID string
	Healthy      []string
	Unhealthy    []string
	Update       *drover.DeploymentStatusUpdate
	Job          *drover.Job
	Evals        []*drover.Evaluation
	Time         int64
}

// PromoteDeployment promotes canaries. Result: nil. Errors: NotFound, Conflict if the deployment is over or canaries
// are missing or unhealthy.
type PromoteDeployment struct {
	DeploymentID string
	Groups       []string // nil = all
	Evals        []*drover.Evaluation
	Time         int64
}

// Kind implements Command.
func (*UpsertDeployment) Kind() Kind { return KindUpsertDeployment }

// Kind implements Command.
func (*UpdateDeploymentStatus) Kind() Kind { return KindUpdateDeploymentStatus }

// Kind implements Command.
func (*SetAllocHealth) Kind() Kind { return KindSetAllocHealth }

// Kind implements Command.
func (*PromoteDeployment) Kind() Kind { return KindPromoteDeployment }
