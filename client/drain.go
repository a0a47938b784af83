package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/drover-project/drover"
)

// PlanDrain is what a drain of a node would do, as things are now. Of spec IgnoreSystemJobs and MoveBatch count. Errors: NotFound.
func (c *Client) PlanDrain(ctx context.Context, node string, spec drover.DrainSpec) (plan drover.DrainPlan, err error) {
	_, err = c.call(ctx, http.MethodGet, []string{"drain", "plan"}, url.Values{
		"node_id":       {node},
		"ignore_system": {strconv.FormatBool(spec.IgnoreSystemJobs)}, "move_batch": {strconv.FormatBool(spec.MoveBatch)},
	}, nil, &plan)
	return plan, err
}
