package client

import (
	"context"
	"net/http"

	"github.com/drover-project/drover"
)

// PlanDrain is what a drain of a node would do, as things are now. Of spec IgnoreSystemJobs and MoveBatch count. Errors: NotFound,
// Exhausted if it takes the server too long.
func (c *Client) PlanDrain(ctx context.Context, node string, spec drover.DrainSpec) (plan drover.DrainPlan, err error) {
	_, err = c.call(ctx, http.MethodGet, []string{"drain", "plan"}, spec.PlanQuery(node), nil, &plan)
	return plan, err
}
