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

// Doctor asks all servers of the region how they are, and is what that means, in words. It needs no leader.
func (c *Client) Doctor(ctx context.Context) (cluster.Examination, error) {
	var x cluster.Examination
	_, err := c.call(ctx, http.MethodGet, []string{"doctor"}, nil, nil, &x)
	return x, err
}
