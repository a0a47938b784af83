package agent

import (
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/nomad/answer"
)

// Config is what the group needs beside the cluster.
type Config struct {
	Process Process
	Servers Servers
	Pprof   bool // serves /v1/agent/pprof
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
		{Pattern: "GET /v1/agent/self", Handle: f.agentSelf},
		{Pattern: "GET /v1/agent/members", Handle: f.agentMembers},
		{Pattern: "GET /v1/agent/servers", Handle: f.agentServers},
		{Pattern: "GET /v1/agent/health", Handle: f.agentHealth, Open: true},
		{Pattern: "GET /v1/agent/host", Handle: f.agentHost},
		{Pattern: "GET /v1/agent/monitor", Handle: f.monitor, Stream: true},
		{Pattern: "GET /v1/metrics", Handle: f.metrics},
		{Pattern: "GET /v1/status/leader", Handle: f.leader, Open: true},
		{Pattern: "GET /v1/status/peers", Handle: f.peers, Open: true},
		{Pattern: "GET /.well-known/jwks.json", Handle: f.jwks, Open: true},
		{Pattern: "GET /v1/regions", Handle: f.regions, Open: true},
		{Pattern: "GET /v1/agent/schedulers", Handle: f.schedulers},
		{Pattern: "GET /v1/agent/schedulers/config", Handle: f.schedulersConfig},
		{Pattern: "PUT,POST /v1/agent/schedulers/config", Handle: f.setSchedulers},
		{Pattern: "GET /v1/operator/raft/configuration", Handle: f.raftConfiguration},
		{Pattern: "DELETE /v1/operator/raft/peer", Handle: f.removePeer},
	}
	if cfg.Pprof {
		routes = append(routes, pprofRoutes()...)
	}
	return routes
}
