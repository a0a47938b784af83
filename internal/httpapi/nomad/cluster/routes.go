package cluster

import (
	"context"
	"slices"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/nomad/answer"
	"github.com/drover-project/drover/internal/policy"
	"github.com/drover-project/drover/internal/rights"
	"github.com/drover-project/drover/secrets"
	"github.com/drover-project/drover/tenancy"
)

// Intake changes what belongs to the cluster.
type Intake interface {
	UpsertNamespace(ctx context.Context, n *tenancy.Namespace) (drover.Outcome, error)
	DeleteNamespace(ctx context.Context, name string) (drover.Outcome, error)
	UpsertQuota(ctx context.Context, q *tenancy.QuotaSpec) (drover.Outcome, error)
	DeleteQuota(ctx context.Context, name string) (drover.Outcome, error)
	UpsertAdmissionRule(ctx context.Context, r *drover.AdmissionRule) (drover.Outcome, error)
	DeleteAdmissionRule(ctx context.Context, name string) (drover.Outcome, error)
	// SetSchedulerConfig stores c; with cas only if the stored one's ModifyIndex is c's (updated says so).
	SetSchedulerConfig(
		ctx context.Context, c drover.SchedulerConfiguration, cas bool,
	) (updated bool, o drover.Outcome, err error)
	CollectGarbage(ctx context.Context) error
	ReconcileSummaries(ctx context.Context) error
}

// Variables are what a search finds beside the state.
type Variables interface {
	List(who *rights.Caller, namespace, prefix string) []*secrets.VariableMetadata
}

// Config is what the group needs beside the cluster.
type Config struct {
	Intake interface {
		Intake
		Revoking
	}
	Events   Events
	NoEvents bool // refuse the event stream, but for brief ones
	Archives Archives
	// Variables lists those that the caller may list; nil: there are none.
	Variables Variables
	// Heartbeat is how often an event stream without events sends {}.
	Heartbeat time.Duration
}

// face answers the group's requests.
type face struct {
	*answer.Cluster
	Config
}

// Routes lists the group's routes.
func Routes(c *answer.Cluster, cfg Config) []httpapi.Route {
	f := &face{c, cfg}
	spaces := httpapi.Filtered("namespaces in which the caller has a capability")
	found := httpapi.Filtered("what the caller may list or read")
	return append([]httpapi.Route{
		{Pattern: "GET /v1/namespaces", Where: httpapi.Reads, Need: spaces, Handle: f.listNamespaces},
		{Pattern: "PUT,POST /v1/namespace", Where: httpapi.Authority, Need: httpapi.Management, Handle: f.upsertNamespace},
		{Pattern: "GET /v1/namespace/{name}", Where: httpapi.Reads, Need: spaces, Handle: f.readNamespace},
		{Pattern: "PUT,POST /v1/namespace/{name}", Where: httpapi.Authority, Need: httpapi.Management, Handle: f.upsertNamespace},
		{Pattern: "DELETE /v1/namespace/{name}", Where: httpapi.Authority, Need: httpapi.Management, Handle: f.deleteNamespace},

		{
			Pattern: "GET /v1/event/stream", Where: httpapi.Reads,
			Need: httpapi.Filtered("events of what the caller may read"), Handle: f.streamEvents, Stream: true,
		},
		{Pattern: "PUT,POST /v1/search", Where: httpapi.Reads, Need: found, Handle: f.prefixSearch},
		{Pattern: "PUT,POST /v1/search/fuzzy", Where: httpapi.Reads, Need: found, Handle: f.fuzzySearch},

		{
			Pattern: "GET /v1/operator/scheduler/configuration", Where: httpapi.Reads,
			Need: httpapi.Level(policy.Operator, policy.Read), Handle: f.readSchedulerConfig,
		},
		{
			Pattern: "PUT,POST /v1/operator/scheduler/configuration", Where: httpapi.Leader,
			Need: httpapi.Level(policy.Operator, policy.Write), Handle: f.writeSchedulerConfig,
		},
		{
			Pattern: "GET /v1/operator/snapshot", Where: httpapi.Reads,
			Need: httpapi.Operator(policy.SnapshotSave), Handle: f.saveSnapshot, Stream: true,
		},
		{Pattern: "PUT,POST /v1/operator/snapshot", Where: httpapi.Leader, Need: httpapi.Management, Handle: f.restoreSnapshot, MaxBody: -1},
		{Pattern: "PUT,POST /v1/system/gc", Where: httpapi.Leader, Need: httpapi.Management, Handle: f.systemGC},
		{Pattern: "PUT,POST /v1/system/reconcile/summaries", Where: httpapi.Leader, Need: httpapi.Management, Handle: f.reconcileSummaries},
	}, slices.Concat(f.quotaRoutes(), f.admissionRoutes(), f.revocationRoutes())...)
}
