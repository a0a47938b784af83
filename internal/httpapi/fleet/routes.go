package fleet

import (
	"net/http"
	"strings"
	"time"

	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/openapi"
	"github.com/drover-project/drover/internal/policy"
)

// Routes serves httpapi.Face.
func (f *Face) Routes() []httpapi.Route {
	reads, writes := httpapi.Level(policy.Fleet, policy.Read), httpapi.Level(policy.Fleet, policy.Write)
	measures := httpapi.Level(policy.Agent, policy.Read).OpenAs(acl.OpenMetrics)
	routes := []httpapi.Route{
		{Pattern: "GET /arvados/v1/dispatch/containers", Where: httpapi.Leader, Need: reads, Handle: f.containers},
		{Pattern: "GET /arvados/v1/dispatch/container", Where: httpapi.Leader, Need: reads, Handle: f.container},
		{Pattern: "POST /arvados/v1/dispatch/containers/kill", Where: httpapi.Leader, Need: writes, Handle: f.killContainer},
		{Pattern: "GET /arvados/v1/dispatch/instances", Where: httpapi.Leader, Need: reads, Handle: f.arvadosInstances},
		{Pattern: "POST /arvados/v1/dispatch/instances/{word}", Where: httpapi.Leader, Need: writes, Handle: f.arvadosOperate},
		{Pattern: "GET /metrics", Where: httpapi.Here, Need: measures, Handle: f.metrics},
		{Pattern: "GET /metrics.json", Where: httpapi.Here, Need: measures, Handle: f.metricsJSON},
		{Pattern: "GET /_health/ping", Where: httpapi.Here, Need: httpapi.Anybody, Handle: f.ping},
	}
	for _, op := range f.operations() {
		need := writes
		if strings.HasPrefix(op.Pattern, "GET ") {
			need = reads
		}
		routes = append(routes, httpapi.Route{Pattern: op.Pattern, Where: where(op.Pattern), Need: need, Handle: op.handle})
	}
	return routes
}

// where says which server answers: the loops are the leader's, a file is the asked server's, and books are in the state or at all.
func where(pattern string) httpapi.Where {
	switch pattern {
	case applyPattern, auditPattern, differencesPattern, simulatePattern:
		return httpapi.Any
	case costPattern:
		return httpapi.Reads
	}
	return httpapi.Leader
}

// Routes that not only the leader answers.
const (
	applyPattern       = "PUT,POST /v1/fleet/apply"
	differencesPattern = "GET /v1/fleet/apply"
	auditPattern       = "GET /v1/fleet/audit"
	costPattern        = "GET /v1/fleet/cost"
)

// operation is a route with its description; both come from one table, so that the document cannot miss a route.
type operation struct {
	openapi.Operation
	handle func(http.ResponseWriter, *http.Request) error
}

// Operations are the face's own routes, for the OpenAPI document; Arvados' paths are described by Arvados.
func (f *Face) Operations() (list []openapi.Operation) {
	for _, op := range f.operations() {
		list = append(list, op.Operation)
	}
	return list
}

// operations is the fleet's table of contents.
func (f *Face) operations() []operation {
	pool := openapi.Param{Name: "pool", Kind: "string", About: "only of this one"}
	list := append([]operation{f.simulation()}, f.poolOperations()...)
	list = append(list, f.machineOperations(pool)...)
	return append(list, f.bookOperations(pool)...)
}

// poolOperations are about pools, and about the files that have them.
func (f *Face) poolOperations() []operation {
	ok, empty := http.StatusOK, http.StatusNoContent
	return []operation{
		{
			openapi.Operation{Pattern: "GET /v1/fleet/pools", Summary: "List pools with how they stand", Out: []fleet.PoolStatus{}, Status: ok},
			f.listPools,
		},
		{openapi.Operation{
			Pattern: "GET /v1/fleet/pool/{pool}", Summary: "Read a pool with how it stands", Out: fleet.PoolStatus{},
			Status: ok,
		}, f.getPool},
		{openapi.Operation{
			Pattern: "PUT,POST /v1/fleet/pool/{pool}",
			Query: []openapi.Param{{
				Name: "was", Kind: "integer",
				About: "the ModifyIndex of the pool as you read it, 0 for none: a conflict if it was changed since",
			}},
			Summary: "Create or replace a pool; its machines are untouched by the change itself", In: fleet.Policy{}, Out: fleet.PoolStatus{},
			Status: ok,
		}, f.putPool},
		{openapi.Operation{
			Pattern: "DELETE /v1/fleet/pool/{pool}",
			Summary: "Delete a pool: it buys nothing more, and is gone with its last machine", Status: empty,
		}, f.deletePool},
		{openapi.Operation{
			Pattern: "PUT,POST /v1/fleet/pool/{pool}/pause", Summary: "Pause or resume a pool's creates and destroys",
			In: fleet.Pause{}, Out: fleet.PoolStatus{}, Status: ok,
		}, f.pausePool},
		{openapi.Operation{
			Pattern: differencesPattern, Summary: "Say in what the asked server's configuration has other pools than the fleet",
			Out: fleet.Applied{}, Status: ok,
		}, f.differences},
		{openapi.Operation{
			Pattern: applyPattern,
			Summary: "Make the pools those of a file, or of the asked server's configuration; with Preview only say what would change",
			In:      fleet.Application{}, Out: fleet.Applied{}, Status: ok,
		}, f.apply},
	}
}

// machineOperations are about machines; pool is the parameter that asks for those of one.
func (f *Face) machineOperations(pool openapi.Param) []operation {
	type params = []openapi.Param
	ok, empty := http.StatusOK, http.StatusNoContent
	return []operation{
		{
			openapi.Operation{
				Pattern: "GET /v1/fleet/instances", Summary: "List machines with state, price, age, work and reason",
				Query: params{pool, {Name: "state", Kind: "string", About: "only in this state"}}, Out: []fleet.Instance{}, Status: ok,
			},
			f.listInstances,
		},
		{openapi.Operation{
			Pattern: "GET /v1/fleet/instance/{instance}",
			Summary: "Explain a machine, by its id, the beginning of that, or the cloud's id", Out: fleet.Explanation{}, Status: ok,
		}, f.explain},
		f.timelineOperation(pool),
		{openapi.Operation{
			Pattern: "PUT,POST /v1/fleet/instance/{instance}/{word}", Summary: "Tell a machine to hold, drain, run or kill",
			Query: params{{Name: "reason", Kind: "string", About: "instead of the body"}}, In: Reason{}, Status: empty, Loose: true,
		}, f.operate},
		{
			openapi.Operation{
				Pattern: "PUT,POST /v1/fleet/instance/{instance}/interrupt",
				Summary: "Tell that the cloud takes a machine back; without a time it is in two minutes", In: Notice{}, Status: empty, Loose: true,
			},
			f.interrupt,
		},
	}
}

// bookOperations are about what the fleet would do, what waits for it, what it did, and what that cost.
func (f *Face) bookOperations(pool openapi.Param) []operation {
	type params = []openapi.Param
	ok := http.StatusOK
	return []operation{
		{openapi.Operation{
			Pattern: "GET /v1/fleet/plan", Summary: "What the fleet would do now, and why, without doing it",
			Query: params{pool}, Out: []fleet.Plan{}, Status: ok,
		}, f.plan},
		{openapi.Operation{
			Pattern: "GET /v1/fleet/waiting", Summary: "Work that waits for machines, and what happens about it",
			Query: params{pool}, Out: []fleet.Waiting{}, Status: ok,
		}, f.waiting},
		{openapi.Operation{Pattern: auditPattern, Summary: "What the fleet and its operators did, the newest last", Query: params{
			pool, {Name: "instance", Kind: "string", About: "only of this machine, by its id or the beginning of that"}, {
				Name: "limit",
				Kind: "integer", About: "the newest so many; default 200",
			},
		}, Out: []fleet.Audit{}, Status: ok}, f.audit},
		{openapi.Operation{Pattern: costPattern, Summary: "What machines cost", Query: params{
			{Name: "from", Kind: "string", About: "the first day, as 2026-01-31; default all that is remembered"},
			{Name: "by", Kind: "string", About: "pool (default), day, job, namespace or machine; or two of the first four, as day,job"},
		}, Out: fleet.CostReport{}, Status: ok}, f.costs},
	}
}

// Reason is the body of what an operator wants of a machine.
type Reason struct{ Reason string }

// Notice is the body of an interruption.
type Notice struct{ At time.Time }
