package nomad

import (
	"context"
	"net/http"
	"os"
	"runtime"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/tables"
)

func (f *Face) agentRoutes() []httpapi.Route {
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
		{Pattern: "GET /v1/operator/scheduler/configuration", Handle: f.readSchedulerConfig},
		{Pattern: "PUT,POST /v1/operator/scheduler/configuration", Handle: f.writeSchedulerConfig},
		{Pattern: "PUT,POST /v1/system/gc", Handle: f.systemGC},
		{Pattern: "PUT,POST /v1/system/reconcile/summaries", Handle: f.reconcileSummaries},
	}
	if f.Pprof {
		routes = append(routes, pprofRoutes()...)
	}
	return routes
}

func (f *Face) agentSelf(w http.ResponseWriter, r *http.Request) error {
	return f.reply(w, r, f.Agent.Self())
}

func (f *Face) agentMembers(w http.ResponseWriter, r *http.Request) error {
	self := f.Agent.Self().Member
	return f.reply(w, r, struct {
		ServerName, ServerRegion, ServerDC string
		Members                            []Member
	}{self.Name, f.Region, self.Tags["dc"], f.Agent.Members()})
}

func (f *Face) agentServers(w http.ResponseWriter, r *http.Request) error {
	return f.reply(w, r, append([]string{}, f.Agent.Peers()...))
}

func (f *Face) agentHealth(w http.ResponseWriter, r *http.Request) error {
	var answer struct {
		Client *Health `json:"client,omitempty"`
		Server *Health `json:"server,omitempty"`
	}
	answer.Server, answer.Client = f.Agent.Health()
	switch kind := r.URL.Query().Get("type"); kind {
	case "":
	case "client":
		answer.Server = nil
	case "server":
		answer.Client = nil
	default:
		return drover.Errorf(drover.Invalid, "invalid type %q: it is client or server", kind)
	}
	status := http.StatusOK
	for _, h := range []*Health{answer.Client, answer.Server} {
		if h != nil && !h.Ok {
			status = http.StatusInternalServerError
		}
	}
	return httpapi.WriteJSON(w, r, status, answer)
}

// agentHost tells of the machine what helps to understand it. Environment variables may hold secrets: left out.
func (f *Face) agentHost(w http.ResponseWriter, r *http.Request) error {
	if err := f.onlyHere(r); err != nil {
		return err
	}
	type host struct {
		OS          string
		Network     []map[string]string
		ResolvConf  string
		Hosts       string
		Environment map[string]string
		Disk        map[string]struct{}
	}
	return f.reply(w, r, struct {
		AgentID  string
		HostData host
	}{f.Agent.Self().Member.Name, host{
		OS: runtime.GOOS + " " + runtime.GOARCH, Network: []map[string]string{}, ResolvConf: textOf("/etc/resolv.conf"),
		Hosts: textOf("/etc/hosts"), Environment: map[string]string{}, Disk: map[string]struct{}{},
	}})
}

func textOf(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return string(b)
}

// onlyHere refuses requests for another agent, which are not forwarded yet.
func (f *Face) onlyHere(r *http.Request) error {
	v := r.URL.Query()
	node, server := v.Get("node_id"), v.Get("server_id")
	switch {
	case node != "" && server != "":
		return drover.Errorf(drover.Invalid, "Cannot target node and server simultaneously")
	case node != "" && node != f.Agent.LocalNode():
		return drover.Errorf(drover.NotImplemented, "asking another node's agent is not implemented yet")
	case server != "" && server != "leader" && server != f.Agent.Self().Member.Name:
		return drover.Errorf(drover.NotImplemented, "asking another server's agent is not implemented yet")
	}
	return nil
}

func (f *Face) metrics(w http.ResponseWriter, r *http.Request) error {
	f.Agent.Metrics().ServeHTTP(w, r)
	return nil
}

func (f *Face) leader(w http.ResponseWriter, r *http.Request) error {
	leader := f.Agent.Leader()
	if leader == "" {
		return drover.Errorf(drover.Internal, "No cluster leader")
	}
	return f.reply(w, r, leader)
}

func (f *Face) peers(w http.ResponseWriter, r *http.Request) error {
	return f.reply(w, r, append([]string{}, f.Agent.Peers()...))
}

func (f *Face) regions(w http.ResponseWriter, r *http.Request) error {
	return f.reply(w, r, []string{f.Region})
}

func (f *Face) raftConfiguration(w http.ResponseWriter, r *http.Request) error {
	return f.reply(w, r, f.Agent.Raft())
}

// removePeer refuses: one server is one voter, and it can't be taken away.
func (f *Face) removePeer(_ http.ResponseWriter, r *http.Request) error {
	v := r.URL.Query()
	id, address := v.Get("id"), v.Get("address")
	if id == "" == (address == "") {
		return drover.Errorf(drover.Invalid, "Must specify either ?id with the server's ID or ?address with IP:port of peer to remove")
	}
	for _, s := range f.Agent.Raft().Servers {
		if s.ID == id && id != "" || s.Address == address && address != "" {
			return drover.Errorf(drover.Invalid, "%s is the only voter: it can't be removed", s.ID)
		}
	}
	if id != "" {
		return drover.Errorf(drover.NotFound, "id %q was not found in the Raft configuration", id)
	}
	return drover.Errorf(drover.NotFound, "address %q was not found in the Raft configuration", address)
}

func (f *Face) readSchedulerConfig(w http.ResponseWriter, r *http.Request) error {
	q, err := f.parseQuery(r)
	if err != nil {
		return err
	}
	snap, index, err := f.await(r.Context(), q, []source{{table: tables.SchedulerConfig}}, func(s Snapshot) uint64 { return s.TableIndex(tables.SchedulerConfig) })
	if err != nil {
		return err
	}
	f.setIndex(w, index)
	return httpapi.WriteJSON(w, r, http.StatusOK, struct {
		SchedulerConfig *drover.SchedulerConfiguration
		queryMeta
	}{snap.SchedulerConfig(), queryMeta{Index: index, KnownLeader: true}})
}

func (f *Face) writeSchedulerConfig(w http.ResponseWriter, r *http.Request) error {
	var c drover.SchedulerConfiguration
	if err := httpapi.DecodeJSON(r, &c); err != nil {
		return err
	}
	switch c.SchedulerAlgorithm {
	case "":
		c.SchedulerAlgorithm = drover.SchedulerBinpack
	case drover.SchedulerBinpack, drover.SchedulerSpread:
	default:
		return drover.Errorf(drover.Invalid, "invalid scheduler algorithm: %q", c.SchedulerAlgorithm)
	}
	index, err := httpapi.UintParam(r, "cas", 0)
	if err != nil {
		return err
	}
	cas := r.URL.Query().Has("cas")
	if cas {
		c.ModifyIndex = index
	}
	updated, o, err := f.Intake.SetSchedulerConfig(r.Context(), c, cas)
	if err != nil {
		return err
	}
	return f.written(w, r, o, struct {
		Updated bool
		Index   uint64
	}{updated, o.Index})
}

func (f *Face) systemGC(w http.ResponseWriter, r *http.Request) error {
	if err := f.Intake.CollectGarbage(r.Context()); err != nil {
		return err
	}
	return f.reply(w, r, struct{}{})
}

func (f *Face) reconcileSummaries(w http.ResponseWriter, r *http.Request) error {
	if err := f.Intake.ReconcileSummaries(r.Context()); err != nil {
		return err
	}
	return f.reply(w, r, struct{}{})
}

// monitor streams the agent's log lines.
func (f *Face) monitor(w http.ResponseWriter, r *http.Request) error {
	if err := f.onlyHere(r); err != nil {
		return err
	}
	level := r.URL.Query().Get("log_level")
	switch level {
	case "":
		level = "info"
	case "trace", "debug", "info", "warn", "error", "TRACE", "DEBUG", "INFO", "WARN", "ERROR":
	default:
		return drover.Errorf(drover.Invalid, "Unknown log level: %s", level)
	}
	asJSON, err := httpapi.BoolParam(r, "log_json", false)
	if err != nil {
		return err
	}
	plain, err := httpapi.BoolParam(r, "plain", false)
	if err != nil {
		return err
	}
	if plain && asJSON {
		return drover.Errorf(drover.Invalid, "plain and log_json cannot be given together")
	}
	tail, err := f.Agent.Logs(level, asJSON)
	if err != nil {
		return err
	}
	defer tail.Close()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	lines := pump(ctx, 64, tail.Next)
	f.setIndex(w, f.State.Snapshot().Index())
	if plain {
		s := f.openStream(w, "text/plain; charset=utf-8", false)
		_ = relay(ctx, s, lines, writeTimeout, s.bytes, func() error { return nil }) // ends with the client
		return nil
	}
	s := f.openStream(w, "application/json", false)
	_ = relay(ctx, s, lines, frameHeartbeat, func(line []byte) error {
		return s.object(frame{Data: line, FileEvent: "log"})
	}, func() error { return s.bytes([]byte("{}")) })
	return nil
}
