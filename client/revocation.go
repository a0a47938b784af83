package client

import (
	"context"
	"net/http"

	"github.com/drover-project/drover/cluster"
)

// RevokeCertificate has all servers refuse a certificate, or a node, and returns what is stored. Errors: Invalid; Conflict for the
// certificate of the server that leads; Forbidden without operator:write.
func (c *Client) RevokeCertificate(ctx context.Context, q cluster.RevokeRequest) (r cluster.Revocation, err error) {
	_, err = c.call(ctx, http.MethodPut, []string{"operator", "tls", "revocations"}, nil, q, &r)
	return r, err
}

// Revocations lists what servers refuse, by id. Errors: Forbidden without operator:read.
func (c *Client) Revocations(ctx context.Context) (list []cluster.Revocation, err error) {
	_, err = c.call(ctx, http.MethodGet, []string{"operator", "tls", "revocations"}, nil, nil, &list)
	return list, err
}

// ReinstateCertificate takes a revocation back. Errors: NotFound; Forbidden without operator:write.
func (c *Client) ReinstateCertificate(ctx context.Context, id string) error {
	_, err := c.call(ctx, http.MethodDelete, []string{"operator", "tls", "revocation", id}, nil, nil, nil)
	return err
}
