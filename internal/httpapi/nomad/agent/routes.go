package agent

import (
	"net/http"
	"strings"

	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/nomad/answer"
)

// Config is what the group needs beside the cluster.
type Config struct {
	Process Process
	Servers Servers
	Pprof   bool // serves /v1/agent/pprof
	// NodeAgent reaches the agent of another node; may be nil.
	NodeAgent func(nodeID string) (http.RoundTripper, error)
}

// face answers the group's requests.
type face struct {
	*answer.Cluster
	Config
	key publicKey
}

// Routes lists the group's routes.
func Routes(c *answer.Cluster, cfg Config) []httpapi.Route {
	f := &face{c, cfg, newPublicKey()}
	routes := []httpapi.Route{
		{Pattern: "GET /v1/agent/self", Where: httpapi.Member, Handle: f.agentSelf},
		{Pattern: "GET /v1/agent/members", Where: httpapi.Any, Handle: f.agentMembers},
		{Pattern: "GET /v1/agent/servers", Where: httpapi.Here, Handle: f.agentServers},
		{Pattern: "PUT,POST /v1/agent/join", Where: httpapi.Here, Handle: f.join},
		{Pattern: "PUT,POST /v1/agent/force-leave", Where: httpapi.Here, Handle: f.forceLeave},
		{Pattern: "PUT,POST /v1/agent/reload", Where: httpapi.Here, Handle: f.reload},
		{Pattern: "GET /v1/agent/health", Where: httpapi.Here, Handle: f.agentHealth, Open: true},
		{Pattern: "GET /v1/agent/host", Where: httpapi.Member, Handle: f.agentHost},
		{Pattern: "GET /v1/agent/monitor", Where: httpapi.Member, Handle: f.monitor, Stream: true},
		{Pattern: "GET /v1/metrics", Where: httpapi.Member, Handle: f.metrics},
		{Pattern: "GET /v1/status/leader", Where: httpapi.Any, Handle: f.leader, Open: true},
		{Pattern: "GET /v1/status/peers", Where: httpapi.Any, Handle: f.peers, Open: true},
		{Pattern: "GET /.well-known/jwks.json", Where: httpapi.Any, Handle: f.jwks, Open: true},
		{Pattern: "GET /v1/regions", Where: httpapi.Any, Handle: f.regions, Open: true},
		{Pattern: "GET /v1/agent/schedulers", Where: httpapi.Member, Handle: f.schedulers},
		{Pattern: "GET /v1/agent/schedulers/config", Where: httpapi.Member, Handle: f.schedulersConfig},
		{Pattern: "PUT,POST /v1/agent/schedulers/config", Where: httpapi.Member, Handle: f.setSchedulers},
		{Pattern: "GET /v1/operator/raft/configuration", Where: httpapi.Reads, Handle: f.raftConfiguration},
		{Pattern: "DELETE /v1/operator/raft/peer", Where: httpapi.Leader, Handle: f.removePeer},
		{Pattern: "PUT,POST /v1/operator/raft/transfer-leadership", Where: httpapi.Leader, Handle: f.transfer},
		{Pattern: "GET /v1/operator/autopilot/configuration", Where: httpapi.Reads, Handle: f.readAutopilot},
		{Pattern: "PUT,POST /v1/operator/autopilot/configuration", Where: httpapi.Leader, Handle: f.writeAutopilot},
		{Pattern: "GET /v1/operator/autopilot/health", Where: httpapi.Leader, Handle: f.autopilotHealth},
		{Pattern: "GET /v1/agent/keyring/list", Where: httpapi.Here, Handle: f.listKeys},
		{Pattern: "PUT,POST /v1/agent/keyring/install", Where: httpapi.Here, Handle: f.changeKeys(Keyring.InstallKey)},
		{Pattern: "PUT,POST /v1/agent/keyring/use", Where: httpapi.Here, Handle: f.changeKeys(Keyring.UseKey)},
		{Pattern: "PUT,POST /v1/agent/keyring/remove", Where: httpapi.Here, Handle: f.changeKeys(Keyring.RemoveKey)},
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
