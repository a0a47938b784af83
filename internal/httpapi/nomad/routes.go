package nomad

import "github.com/drover-project/drover/internal/httpapi"

// Routes is the table of contents. PUT and POST are the same everywhere, as in Nomad.
func (f *Face) Routes() []httpapi.Route {
	routes := []httpapi.Route{
		{Pattern: "GET /v1/jobs", Handle: f.listJobs},
		{Pattern: "PUT,POST /v1/jobs", Handle: f.registerJob},
		{Pattern: "PUT,POST /v1/jobs/parse", Handle: f.parseJob},
		{Pattern: "GET,POST /v1/jobs/statuses", Handle: f.jobStatuses},
		{Pattern: "PUT,POST /v1/validate/job", Handle: f.validateJob},
		{Pattern: "GET /v1/job/{rest...}", Handle: f.jobGet},
		{Pattern: "PUT,POST /v1/job/{rest...}", Handle: f.jobPut},
		{Pattern: "DELETE /v1/job/{rest...}", Handle: f.jobDelete},

		{Pattern: "GET /v1/allocations", Handle: f.listAllocations},
		{Pattern: "GET /v1/allocation/{id}", Handle: f.readAllocation},
		{Pattern: "PUT,POST /v1/allocation/{id}/stop", Handle: f.stopAllocation},
		{Pattern: "GET /v1/allocation/{id}/services", Handle: f.allocationServices},
		{Pattern: "GET /v1/client/allocation/{id}/exec", Handle: f.execAllocation, Stream: true, Open: true},
		{Pattern: "GET /v1/client/allocation/{id}/stats", Handle: f.allocationStats},
		{Pattern: "GET /v1/client/allocation/{id}/checks", Handle: f.allocationChecks},
		{Pattern: "GET,PUT,POST /v1/client/allocation/{id}/gc", Handle: f.collectAllocation},
		{Pattern: "PUT,POST /v1/client/allocation/{id}/restart", Handle: f.restartAllocation},
		{Pattern: "PUT,POST /v1/client/allocation/{id}/signal", Handle: f.signalAllocation},

		{Pattern: "GET /v1/client/fs/ls/{id}", Handle: f.fsList},
		{Pattern: "GET /v1/client/fs/stat/{id}", Handle: f.fsStat},
		{Pattern: "GET /v1/client/fs/cat/{id}", Handle: f.fsCat, Stream: true},
		{Pattern: "GET /v1/client/fs/readat/{id}", Handle: f.fsReadAt, Stream: true},
		{Pattern: "GET /v1/client/fs/stream/{id}", Handle: f.fsStream, Stream: true},
		{Pattern: "GET /v1/client/fs/logs/{id}", Handle: f.fsLogs, Stream: true},
		{Pattern: "GET /v1/client/stats", Handle: f.nodeStats},
		{Pattern: "GET,PUT,POST /v1/client/gc", Handle: f.nodeGC},
		{Pattern: "GET /v1/client/metadata", Handle: f.readNodeMeta},
		{Pattern: "PUT,POST /v1/client/metadata", Handle: f.writeNodeMeta},

		{Pattern: "GET /v1/evaluations", Handle: f.listEvaluations},
		{Pattern: "DELETE /v1/evaluations", Handle: f.deleteEvaluations},
		{Pattern: "GET /v1/evaluations/count", Handle: f.countEvaluations},
		{Pattern: "GET /v1/evaluation/{id}", Handle: f.readEvaluation},
		{Pattern: "GET /v1/evaluation/{id}/allocations", Handle: f.evaluationAllocations},

		{Pattern: "GET /v1/deployments", Handle: f.listDeployments},
		{Pattern: "GET /v1/deployment/{id}", Handle: f.readDeployment},
		{Pattern: "GET /v1/deployment/allocations/{id}", Handle: f.deploymentAllocations},
		{Pattern: "PUT,POST /v1/deployment/{action}/{id}", Handle: f.changeDeployment},

		{Pattern: "GET /v1/nodes", Handle: f.listNodes},
		{Pattern: "GET /v1/node/{id}", Handle: f.readNode},
		{Pattern: "GET,PUT,POST,DELETE /v1/node/{id}/{action}", Handle: f.nodeAction},
		{Pattern: "GET /v1/node/pool/{name}/nodes", Handle: f.nodePoolNodes},
		{Pattern: "GET /v1/node/pool/{name}/jobs", Handle: f.nodePoolJobs},
		{Pattern: "GET /v1/node/pools", Handle: f.listNodePools},
		{Pattern: "PUT,POST /v1/node/pools", Handle: f.upsertNodePool},

		{Pattern: "GET /v1/namespaces", Handle: f.listNamespaces},
		{Pattern: "PUT,POST /v1/namespace", Handle: f.upsertNamespace},
		{Pattern: "GET /v1/namespace/{name}", Handle: f.readNamespace},
		{Pattern: "PUT,POST /v1/namespace/{name}", Handle: f.upsertNamespace},
		{Pattern: "DELETE /v1/namespace/{name}", Handle: f.deleteNamespace},

		{Pattern: "GET /v1/event/stream", Handle: f.streamEvents, Stream: true},
		{Pattern: "PUT,POST /v1/search", Handle: f.prefixSearch},
		{Pattern: "PUT,POST /v1/search/fuzzy", Handle: f.fuzzySearch},
		{Pattern: "GET /v1/scaling/policies", Handle: f.listScalingPolicies},
		{Pattern: "GET /v1/scaling/policy/{id...}", Handle: f.readScalingPolicy},
	}
	routes = append(routes, f.agentRoutes()...)
	return append(routes, f.absentRoutes()...)
}
