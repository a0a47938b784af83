package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

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

// DoctorOfNodes is what the nodes of the region found of themselves, in words; with node, an id, a prefix of one or a name, what that one
// did, also what is well. Errors: NotFound.
func (c *Client) DoctorOfNodes(ctx context.Context, node string) (cluster.NodesExamination, error) {
	query := url.Values{}
	if node != "" {
		query.Set("node", node)
	}
	var x cluster.NodesExamination
	_, err := c.call(ctx, http.MethodGet, []string{"doctor", "nodes"}, query, nil, &x)
	return x, err
}

// Audit is what the servers of the region recorded of requests, the newest first. Errors: Forbidden without a management token; Invalid.
func (c *Client) Audit(ctx context.Context, q cluster.AuditQuery) (cluster.AuditRecords, error) {
	query := url.Values{}
	for name, value := range map[string]string{
		"accessor": q.Accessor, "operation": q.Operation, "object": q.Object, "namespace": q.Namespace, "class": q.Class, "stage": q.Stage,
		"next_token": q.NextToken,
	} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if q.Allowed != nil {
		query.Set("allowed", strconv.FormatBool(*q.Allowed))
	}
	if q.PerPage > 0 {
		query.Set("per_page", strconv.Itoa(q.PerPage))
	}
	for name, at := range map[string]time.Time{"since": q.Since, "until": q.Until} {
		if !at.IsZero() {
			query.Set(name, at.UTC().Format(time.RFC3339Nano))
		}
	}
	var found cluster.AuditRecords
	_, err := c.call(ctx, http.MethodGet, []string{"operator", "audit"}, query, nil, &found)
	return found, err
}
