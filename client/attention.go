package client

import (
	"context"
	"net/http"

	"github.com/drover-project/drover/cluster"
)

// Attention is how the cluster is, and what of it wants attention, as far as the token may read it. Errors: Unavailable while nobody leads.
func (c *Client) Attention(ctx context.Context) (cluster.Attention, error) {
	var a cluster.Attention
	_, err := c.call(ctx, http.MethodGet, []string{"attention"}, nil, nil, &a)
	return a, err
}
