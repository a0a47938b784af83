package client

import (
	"context"
	"net/http"

	"github.com/drover-project/drover/cluster"
)

// Topology is where all nodes are, how they are, and how full. Errors: Forbidden without the right to read nodes.
func (c *Client) Topology(ctx context.Context) (cluster.Topology, error) {
	var t cluster.Topology
	_, err := c.call(ctx, http.MethodGet, []string{"topology"}, nil, nil, &t)
	return t, err
}
