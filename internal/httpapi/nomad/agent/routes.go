package agent

import (
	"net/http"
	"strings"

	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/nomad/answer"
	"github.com/drover-project/drover/internal/policy"
)

// Config is what the group needs beside the cluster.
type Config struct {
	Process  Process
	Servers  Servers
	Operator Operator
	Keyring  Keyring
	Pprof    bool // serves /v1/agent/pprof
	// NodeAgent reaches the agent of another node; may be nil.
	NodeAgent func(nodeID string) (http.RoundTripper, error)
}

// face answers the group's requests.
type face struct {
	*answer.Cluster
	Config
}

// Routes lists the group's routes.
func Routes(c *answer.Cluster, cfg Config) []httpapi.Route {
	f := &face{c, cfg}
	reads, writes := httpapi.Level(policy.Agent, policy.Read), httpapi.Level(policy.Agent, policy.Write)
	sees, operates := httpapi.Level(policy.Operator, policy.Read), httpapi.Level(policy.Operator, policy.Write)
	routes := []httpapi.Route{
		{Pattern: "GET /v1/agent/self", Where: httpapi.Member, Need: reads, Handle: f.agentSelf},
		{Pattern: "GET /v1/agent/members", Where: httpapi.Any, Need: httpapi.Level(policy.Node, policy.Read), Handle: f.agentMembers},
		{Pattern: "GET /v1/agent/servers", Where: httpapi.Here, Need: reads, Handle: f.agentServers},
		{Pattern: "PUT,POST /v1/agent/join", Where: httpapi.Here, Need: writes, Handle: f.join},
		{Pattern: "PUT,POST /v1/agent/force-leave", Where: httpapi.Here, Need: writes, Handle: f.forceLeave},
		{Pattern: "PUT,POST /v1/agent/reload", Where: httpapi.Here, Need: writes, Handle: f.reload},
		{Pattern: "GET /v1/agent/health", Where: httpapi.Here, Need: reads.OpenAs(acl.OpenHealth), Handle: f.agentHealth},
		{Pattern: "GET /v1/agent/host", Where: httpapi.Member, Need: reads, Handle: f.agentHost},
		{Pattern: "GET /v1/agent/monitor", Where: httpapi.Member, Need: reads, Handle: f.monitor, Stream: true},
		{Pattern: "GET /v1/metrics", Where: httpapi.Member, Need: reads.OpenAs(acl.OpenMetrics), Handle: f.metrics},
		{Pattern: "GET /v1/status/leader", Where: httpapi.Any, Need: reads.OpenAs(acl.OpenStatus), Handle: f.leader},
		{Pattern: "GET /v1/status/peers", Where: httpapi.Any, Need: reads.OpenAs(acl.OpenStatus), Handle: f.peers},
		{Pattern: "GET /v1/regions", Where: httpapi.Any, Need: reads.OpenAs(acl.OpenStatus), Handle: f.regions},
		{Pattern: "GET /v1/agent/schedulers", Where: httpapi.Member, Need: reads, Handle: f.schedulers},
		{Pattern: "GET /v1/agent/schedulers/config", Where: httpapi.Member, Need: reads, Handle: f.schedulersConfig},
		{Pattern: "PUT,POST /v1/agent/schedulers/config", Where: httpapi.Member, Need: writes, Handle: f.setSchedulers},
		{Pattern: "GET /v1/operator/raft/configuration", Where: httpapi.Reads, Need: sees, Handle: f.raftConfiguration},
		{Pattern: "DELETE /v1/operator/raft/peer", Where: httpapi.Leader, Need: operates, Handle: f.removePeer},
		{Pattern: "PUT,POST /v1/operator/raft/transfer-leadership", Where: httpapi.Leader, Need: operates, Handle: f.transfer},
		{Pattern: "GET /v1/operator/autopilot/configuration", Where: httpapi.Reads, Need: sees, Handle: f.readAutopilot},
		{Pattern: "PUT,POST /v1/operator/autopilot/configuration", Where: httpapi.Leader, Need: operates, Handle: f.writeAutopilot},
		{Pattern: "GET /v1/operator/autopilot/health", Where: httpapi.Leader, Need: sees, Handle: f.autopilotHealth},
		{Pattern: "GET /v1/agent/keyring/list", Where: httpapi.Here, Need: writes, Handle: f.listKeys},
		{Pattern: "PUT,POST /v1/agent/keyring/install", Where: httpapi.Here, Need: writes, Handle: f.changeKeys(Keyring.InstallKey)},
		{Pattern: "PUT,POST /v1/agent/keyring/use", Where: httpapi.Here, Need: writes, Handle: f.changeKeys(Keyring.UseKey)},
		{Pattern: "PUT,POST /v1/agent/keyring/remove", Where: httpapi.Here, Need: writes, Handle: f.changeKeys(Keyring.RemoveKey)},
	}
	if cfg.Pprof {
		routes = append(routes, f.pprofRoutes()...)
	}
	for i := range routes {
		if routes[i].Where.Place == httpapi.AtMember && strings.HasPrefix(routes[i].Pattern, "GET ") {
			routes[i] = f.ofAnyNode(routes[i])
		}
	}
	return routes
}
