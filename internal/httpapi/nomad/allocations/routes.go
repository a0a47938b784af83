package allocations

import (
	"context"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/nomad/answer"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/policy"
)

// Intake changes allocations.
type Intake interface {
	StopAllocation(ctx context.Context, id string, noShutdownDelay, reschedule bool) (drover.Outcome, error)
}

// Nodes finds the node that can be asked.
type Nodes interface {
	// Workloads returns the node's. Errors: NotFound (unknown node), Unavailable (not connected).
	Workloads(nodeID string) (exchange.Workloads, error)
}

// Config is what the group needs beside the cluster.
type Config struct {
	Intake Intake
	Nodes  Nodes
	ID     id.Source // of executions
	// DisableExec refuses exec in tasks, as Nomad's disable_remote_exec.
	DisableExec bool
}

// face answers the group's requests.
type face struct {
	*answer.Cluster
	Config
}

// Routes lists the group's routes.
func Routes(c *answer.Cluster, cfg Config) []httpapi.Route {
	f, onNode := &face{c, cfg}, httpapi.Allocation(httpapi.PathKey("id"))
	reads, steers := httpapi.OfObject(policy.ReadJob), httpapi.OfObject(policy.AllocLifecycle)
	files := httpapi.OfObject(policy.ReadFS)
	return []httpapi.Route{
		{Pattern: "GET /v1/allocations", Where: httpapi.Reads, Need: httpapi.InNamespace(policy.ReadJob), Handle: f.listAllocations},
		{Pattern: "GET /v1/allocation/{id}", Where: httpapi.Reads, Need: reads, Handle: f.readAllocation},
		{Pattern: "PUT,POST /v1/allocation/{id}/stop", Where: httpapi.Leader, Need: steers, Handle: f.stopAllocation},
		{Pattern: "GET /v1/allocation/{id}/services", Where: httpapi.Reads, Need: reads, Handle: f.allocationServices},
		{
			Pattern: "GET /v1/client/allocation/{id}/exec", Where: onNode,
			Need: httpapi.OfObject(policy.AllocExec).InHandshake(), Handle: f.execAllocation, Stream: true,
		},
		{
			Pattern: "GET /v1/job/{id}/action", Where: httpapi.Allocation(httpapi.QueryKey("allocID")),
			Need: httpapi.OfObject(policy.AllocExec).InHandshake(), Handle: f.runAction, Stream: true,
		},
		{Pattern: "GET /v1/client/allocation/{id}/stats", Where: onNode, Need: reads, Handle: f.allocationStats},
		{Pattern: "GET /v1/client/allocation/{id}/checks", Where: onNode, Need: reads, Handle: f.allocationChecks},
		{
			Pattern: "GET,PUT,POST /v1/client/allocation/{id}/gc", Where: onNode,
			Need: httpapi.OfObject(policy.GCAllocation), Handle: f.collectAllocation,
		},
		{Pattern: "GET /v1/client/allocation/{id}/snapshot", Where: onNode, Need: files, Handle: f.allocationSnapshot, Stream: true},
		{Pattern: "PUT,POST /v1/client/allocation/{id}/restart", Where: onNode, Need: steers, Handle: f.restartAllocation},
		{Pattern: "PUT,POST /v1/client/allocation/{id}/signal", Where: onNode, Need: steers, Handle: f.signalAllocation},

		{Pattern: "GET /v1/client/fs/ls/{id}", Where: onNode, Need: files, Handle: f.fsList},
		{Pattern: "GET /v1/client/fs/stat/{id}", Where: onNode, Need: files, Handle: f.fsStat},
		{Pattern: "GET /v1/client/fs/cat/{id}", Where: onNode, Need: files, Handle: f.fsCat, Stream: true},
		{Pattern: "GET /v1/client/fs/readat/{id}", Where: onNode, Need: files, Handle: f.fsReadAt, Stream: true},
		{Pattern: "GET /v1/client/fs/stream/{id}", Where: onNode, Need: files, Handle: f.fsStream, Stream: true},
		{Pattern: "GET /v1/client/fs/logs/{id}", Where: onNode, Need: httpapi.OfObject(policy.ReadLogs), Handle: f.fsLogs, Stream: true},
	}
}
