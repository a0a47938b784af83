package server

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"drover"
	"drover/internal/httpapi/nomad"
	"drover/internal/telemetry"
	"drover/internal/version"
)

// agentInfo is what the process says of itself.
type agentInfo struct{ *Agent }

// Self implements nomad.Agent. Tokens and other secrets are not shown.
func (a agentInfo) Self() nomad.AgentSelf {
	text, err := json.Marshal(a.cfg)
	var cfg map[string]any
	if err == nil {
		err = json.Unmarshal(text, &cfg)
	}
	if err != nil {
		cfg = map[string]any{"error": err.Error()}
	}
	redact(cfg)
	cfg["Version"] = map[string]any{"Version": version.Nomad, "Drover": version.Version}
	return nomad.AgentSelf{Config: cfg, Member: a.member(), Stats: a.stats()}
}

// stats are texts under Nomad's names.
func (a agentInfo) stats() map[string]map[string]string {
	out := map[string]map[string]string{
		"nomad": {"server": boolText(a.control != nil), "leader": boolText(a.control != nil && a.control.log.IsLeader())},
		"runtime": {
			"arch": runtime.GOARCH, "version": runtime.Version(), "kernel.name": runtime.GOOS,
			"cpu_count": strconv.Itoa(runtime.NumCPU()), "max_procs": strconv.Itoa(runtime.GOMAXPROCS(0)),
			"goroutines": strconv.Itoa(runtime.NumGoroutine()),
		},
	}
	if a.control != nil {
		out["nomad"]["leader_addr"] = a.Leader()
		out["raft"] = a.control.log.Stats().Raft
	}
	if a.node != nil {
		out["client"] = map[string]string{"node_id": a.node.agent.NodeID()}
	}
	return out
}

// redact hides, wherever they are, values whose key says that they are secret.
func redact(v any) {
	switch v := v.(type) {
	case []any:
		for _, one := range v {
			redact(one)
		}
	case map[string]any:
		for key, value := range v {
			name := strings.ToLower(key)
			secret := strings.HasSuffix(name, "token") || strings.Contains(name, "secret") || strings.Contains(name, "password")
			if text, ok := value.(string); ok && secret && text != "" {
				v[key] = "<redacted>"
				continue
			}
			redact(value)
		}
	}
}

func boolText(b bool) string {
	if b {
		return "true"
	}
	return "false"
}

func (a agentInfo) member() nomad.Member {
	name := a.cfg.Name
	if name == "" {
		name, _ = os.Hostname() // empty is shown as it is
	}
	return nomad.Member{
		Name: name + "." + a.cfg.Region, Addr: a.cfg.BindAddr, Port: port(a.http.Addr()), Status: "alive",
		Tags:        map[string]string{"region": a.cfg.Region, "dc": a.cfg.Datacenter, "role": "nomad", "build": version.Nomad, "id": "local"},
		ProtocolMin: 1, ProtocolMax: 5, ProtocolCur: 2, DelegateMin: 2, DelegateMax: 5, DelegateCur: 4,
	}
}

// Members implements nomad.Agent.
func (a agentInfo) Members() []nomad.Member { return []nomad.Member{a.member()} }

// LocalNode implements nomad.Agent.
func (a agentInfo) LocalNode() string {
	if a.node == nil {
		return ""
	}
	return a.node.agent.NodeID()
}

// Leader implements nomad.Agent.
func (a agentInfo) Leader() string {
	if !a.control.log.IsLeader() {
		return ""
	}
	return a.cfg.RPCAddress()
}

// Peers implements nomad.Agent.
func (a agentInfo) Peers() []string { return []string{a.cfg.RPCAddress()} }

// Raft implements nomad.Agent.
func (a agentInfo) Raft() nomad.RaftConfiguration {
	out := nomad.RaftConfiguration{Index: a.control.store.Snapshot().Index()}
	peers, err := a.control.log.Peers()
	if err != nil {
		return out
	}
	for _, p := range peers {
		out.Servers = append(out.Servers, nomad.RaftServer{ID: p.ID, Node: p.ID, Address: p.Address, Leader: p.Leader, Voter: p.Voter, RaftProtocol: "3"})
	}
	return out
}

// Schedulers implements nomad.Agent.
func (a agentInfo) Schedulers() (int, time.Time) {
	if n := deref(a.cfg.Server.NumSchedulers); n > 0 {
		return n, a.started
	}
	return runtime.NumCPU(), a.started
}

// Health implements nomad.Agent.
func (a agentInfo) Health() (server, client *nomad.Health) {
	if a.control != nil {
		server = &nomad.Health{Ok: a.control.log.IsLeader(), Message: "ok"}
		if !server.Ok {
			server.Message = "no leader"
		}
		if sick := a.control.log.Stats().Sick; sick != "" {
			server.Ok, server.Message = false, sick
		}
	}
	if a.node != nil {
		client = &nomad.Health{Ok: true, Message: "ok"}
	}
	return server, client
}

// Metrics implements nomad.Agent.
func (a agentInfo) Metrics() http.Handler { return a.metrics }

// Logs implements nomad.Agent.
func (a agentInfo) Logs(level string, asJSON bool) (nomad.LogTail, error) {
	if a.deps.Ring == nil {
		return nil, drover.Errorf(drover.NotImplemented, "this agent keeps no log to watch")
	}
	l, err := telemetry.ParseLevel(level)
	if err != nil {
		return nil, err
	}
	return logTail{a.deps.Ring.Tail(l, asJSON)}, nil
}

type logTail struct{ t *telemetry.Tail }

// Next implements nomad.LogTail.
func (l logTail) Next(ctx context.Context) ([]byte, error) { return l.t.Next(ctx) }

// Close implements nomad.LogTail.
func (l logTail) Close() { l.t.Close() }
