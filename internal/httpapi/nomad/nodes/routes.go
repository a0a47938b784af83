package nodes

import (
	"context"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/nomad/allocations"
	"github.com/drover-project/drover/internal/httpapi/nomad/answer"
	"github.com/drover-project/drover/internal/policy"
)

// Intake changes nodes and node pools.
type Intake interface {
	SetEligibility(ctx context.Context, nodeID, eligibility string) (drover.Outcome, error)
	DrainNode(ctx context.Context, r drover.DrainRequest) (drover.Outcome, error)
	EvaluateNode(ctx context.Context, nodeID string) (drover.Outcome, error)
	PurgeNode(ctx context.Context, nodeID string) (drover.Outcome, error)
	// SetNodeMeta sets keys of a node's metadata over the node's own; nil removes one.
	SetNodeMeta(ctx context.Context, nodeID string, change map[string]*string) (drover.Outcome, error)
	UpsertNodePool(ctx context.Context, p *drover.NodePool) (drover.Outcome, error)
	DeleteNodePool(ctx context.Context, name string) (drover.Outcome, error)
}

// Config is what the group needs beside the cluster.
type Config struct {
	Intake    Intake
	Nodes     allocations.Nodes
	LocalNode func() string // the id of the node in this process, "" if there is none
	Introductions
}

// face answers the group's requests.
type face struct {
	*answer.Cluster
	Config
}

// Routes lists the group's routes.
func Routes(c *answer.Cluster, cfg Config) []httpapi.Route {
	f, onNode := &face{c, cfg}, httpapi.Node(httpapi.QueryKey("node_id"))
	reads, writes := httpapi.Level(policy.Node, policy.Read), httpapi.Level(policy.Node, policy.Write)
	return []httpapi.Route{
		{Pattern: "GET /v1/client/stats", Where: onNode, Need: reads, Handle: f.nodeStats},
		{Pattern: "GET,PUT,POST /v1/client/gc", Where: onNode, Need: writes, Handle: f.nodeGC},
		{Pattern: "GET /v1/client/identity", Where: onNode, Need: reads, Handle: f.readIdentity},
		{
			Pattern: "PUT,POST /v1/client/identity/renew", Where: httpapi.Node(httpapi.BodyKey("NodeID")), Need: writes,
			Handle: f.renewIdentity,
		},
		{Pattern: "PUT,POST /v1/acl/identity/client-introduction-token", Where: httpapi.Leader, Need: writes, Handle: f.introduce},
		{Pattern: "GET /v1/client/metadata", Where: httpapi.Reads, Need: reads, Handle: f.readNodeMeta},
		{Pattern: "PUT,POST /v1/client/metadata", Where: httpapi.Leader, Need: writes, Handle: f.writeNodeMeta},

		{Pattern: "GET /v1/nodes", Where: httpapi.Reads, Need: reads, Handle: f.listNodes},
		{Pattern: "GET /v1/node/{id}", Where: httpapi.Reads, Need: reads, Handle: f.readNode},
		{
			Pattern: "GET,PUT,POST /v1/node/{id}/{action}", Where: httpapi.ReadsAlone,
			Need: httpapi.Depends(actionNeeds, casesOfActions...), Handle: f.nodeAction,
		},
		{Pattern: "GET /v1/node/pool/{name}", Where: httpapi.Reads, Need: httpapi.OfPool(policy.ReadPool), Handle: f.readNodePool},
		{Pattern: "PUT,POST /v1/node/pool/{name}", Where: httpapi.Authority, Need: httpapi.OfPool(policy.WritePool), Handle: f.upsertNodePool},
		{Pattern: "DELETE /v1/node/pool/{name}", Where: httpapi.Authority, Need: httpapi.OfPool(policy.DeletePool), Handle: f.deleteNodePool},
		{
			Pattern: "GET /v1/node/pool/{name}/nodes", Where: httpapi.Reads,
			Need: reads.Showing("nodes of a pool that the caller may read"), Handle: f.nodePoolNodes,
		},
		{
			Pattern: "GET /v1/node/pool/{name}/jobs", Where: httpapi.Reads,
			Need: httpapi.InNamespace(policy.ReadJob).Showing("jobs of a pool that the caller may read"), Handle: f.nodePoolJobs,
		},
		{Pattern: "GET /v1/node/pools", Where: httpapi.Reads, Need: httpapi.Filtered("pools that the caller may read"), Handle: f.listNodePools},
		{Pattern: "PUT,POST /v1/node/pools", Where: httpapi.Authority, Need: httpapi.OfPool(policy.WritePool), Handle: f.upsertNodePool},
	}
}
