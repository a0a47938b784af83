package nomad_test

import (
	"context"
	"net/http"
	"time"

	"github.com/drover-project/drover"
	clusternoun "github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/httpapi/nomad/agent"
	"github.com/drover-project/drover/internal/telemetry"
)

type fakeAgent struct {
	ring    *telemetry.Ring
	metrics *telemetry.Metrics
	sick    bool

	autopilot clusternoun.Autopilot // what was stored last
}

func (a *fakeAgent) Self() agent.Self {
	return agent.Self{
		Config: map[string]any{"Region": "global", "Datacenter": "dc1", "Version": map[string]string{"Version": "0.1.0"}},
		Member: a.Members()[0], Stats: map[string]map[string]string{},
	}
}

func (a *fakeAgent) Members() []agent.Member {
	return []agent.Member{{
		Name: "s1", Addr: "127.0.0.1", Port: 4648, Tags: map[string]string{"dc": "dc1", "region": "global"},
		Status: "alive",
	}}
}
func (a *fakeAgent) LocalNode() string { return nodeID }
func (a *fakeAgent) Leader() string    { return "127.0.0.1:4647" }
func (a *fakeAgent) Peers() []string   { return []string{"127.0.0.1:4647"} }
func (a *fakeAgent) Join(_ context.Context, addresses []string) (int, error) {
	if addresses[0] == "nobody" {
		return 0, drover.Errorf(drover.Unavailable, "joining: nobody answers")
	}
	return len(addresses), nil
}

func (a *fakeAgent) ForceLeave(name string, prune bool) error {
	if prune {
		return drover.Errorf(drover.Unavailable, "forcing %s to leave: gossip is closed", name)
	}
	return nil
}

func (a *fakeAgent) Schedulers() (int, []string, time.Time) {
	return 2, []string{"service", "batch", "system", "sysbatch"}, fixed
}

func (a *fakeAgent) SetSchedulers(count int, _ []string) error {
	if count < 0 {
		return drover.Errorf(drover.Invalid, "the number of schedulers must be from 0 to 1024, got %d", count)
	}
	return nil
}

func (a *fakeAgent) Raft() agent.RaftConfiguration {
	return agent.RaftConfiguration{Servers: []agent.RaftServer{{
		ID: "s1", Node: "s1", Address: "127.0.0.1:4647", Leader: true,
		Voter: true, RaftProtocol: "3",
	}}, Index: 1}
}

func (a *fakeAgent) Reload() error {
	if a.sick {
		return drover.Errorf(drover.Invalid, "tls.ca_file: ca.pem holds no certificate")
	}
	return nil
}

func (a *fakeAgent) RemovePeer(_ context.Context, id string) error {
	if !a.sick {
		return drover.Errorf(drover.Invalid, "%s is the only voter: it can't be removed", id)
	}
	return nil
}

func (a *fakeAgent) Transfer(_ context.Context, id string) error {
	if !a.sick {
		return drover.Errorf(drover.Invalid, "server %s leads already", id)
	}
	return nil
}

func (a *fakeAgent) Autopilot() clusternoun.Autopilot {
	c := clusternoun.DefaultAutopilot()
	c.CreateIndex, c.ModifyIndex = 3, 4
	return c
}

func (a *fakeAgent) SetAutopilot(_ context.Context, c clusternoun.Autopilot, cas bool) (bool, drover.Outcome, error) {
	a.autopilot = c
	return !cas || c.ModifyIndex == 4, drover.Outcome{Index: 77}, nil
}

func (a *fakeAgent) AutopilotHealth() agent.AutopilotHealth {
	return agent.AutopilotHealth{Healthy: !a.sick, Leader: "s1", Voters: []string{"s1"}, Servers: []agent.ServerHealth{{
		ID: "s1", Name: "s1.global", Address: "127.0.0.1:4647", SerfStatus: "alive", Version: "0.1.0", Leader: true, LastContact: "0s",
		LastTerm: 2, LastIndex: 10, Healthy: !a.sick, Voter: true, StableSince: fixed,
	}}}
}

func (a *fakeAgent) ListKeys(ctx context.Context) (agent.Keys, error) {
	return a.InstallKey(ctx, "a2V5")
}

func (a *fakeAgent) InstallKey(_ context.Context, key string) (agent.Keys, error) {
	return agent.Keys{Messages: map[string]string{}, Keys: map[string]int{key: 1}, PrimaryKeys: map[string]int{key: 1}, NumNodes: 1}, nil
}

func (a *fakeAgent) UseKey(ctx context.Context, key string) (agent.Keys, error) {
	return a.InstallKey(ctx, key)
}

func (a *fakeAgent) RemoveKey(context.Context, string) (agent.Keys, error) {
	return agent.Keys{}, drover.Errorf(drover.Unavailable, "gossip keys: 1/1 nodes reported failure")
}

func (a *fakeAgent) Health() (server, client *agent.Health) {
	if a.sick {
		return &agent.Health{Message: "no leader"}, &agent.Health{Ok: true, Message: "ok"}
	}
	return &agent.Health{Ok: true, Message: "ok"}, &agent.Health{Ok: true, Message: "ok"}
}
func (a *fakeAgent) Metrics() http.Handler { return a.metrics }
func (a *fakeAgent) Logs(level string, asJSON bool) (agent.LogTail, error) {
	l, err := telemetry.ParseLevel(level)
	if err != nil {
		return nil, err
	}
	return a.ring.Tail(l, asJSON), nil
}
