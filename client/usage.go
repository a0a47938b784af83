package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/drover-project/drover/usage"
)

// UsagePast is what an allocation used in the last half hour, as far as somebody asked the server. Errors: NotFound.
func (c *Client) UsagePast(ctx context.Context, allocation string) (past usage.Past, err error) {
	_, err = c.call(ctx, http.MethodGet, []string{"usage", "history"}, url.Values{"allocation": {allocation}}, nil, &past)
	return past, err
}

// NodePast is UsagePast of a node, by its whole id. Errors: Forbidden.
func (c *Client) NodePast(ctx context.Context, node string) (past usage.Past, err error) {
	_, err = c.call(ctx, http.MethodGet, []string{"usage", "history"}, url.Values{"node_id": {node}}, nil, &past)
	return past, err
}

// Usage is what up to usage.MostInBatch allocations use now, by their ids, or why that is not known. Errors: Invalid.
func (c *Client) Usage(ctx context.Context, allocations ...string) (usage.Samples, error) {
	var batch usage.Samples
	_, err := c.call(ctx, http.MethodGet, []string{"usage"}, url.Values{"allocation": allocations}, nil, &batch)
	return batch, err
}
