package servers

import (
	"context"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/config"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/members"
	"github.com/drover-project/drover/internal/control/raftlog"
	"github.com/drover-project/drover/internal/httpapi/nomad/agent"
	"github.com/drover-project/drover/internal/tables"
	"github.com/drover-project/drover/internal/version"
)

// Operator is the servers as operators see and change them through Nomad's API.
type Operator struct{ servers *Servers }

// Operate returns the servers as operators see them.
func (s *Servers) Operate() Operator { return Operator{s} }

// MemberOf is a server as Nomad's clients know members of the gossip.
func MemberOf(m members.Member) agent.Member {
	host, port, _ := net.SplitHostPort(m.Gossip)
	if m.Gossip == "" { // of a server that is alone
		host, port, _ = net.SplitHostPort(m.RPCAddr)
	}
	number, _ := strconv.ParseUint(port, 10, 16) // of a listener
	rpc, rpcPort, _ := net.SplitHostPort(m.RPCAddr)
	return agent.Member{
		Name: m.FullName(), Addr: host, Port: uint16(number), Status: string(m.Status), // parsed as 16 bits
		Tags: map[string]string{ // with its address the port tells clients which member leads
			"region": m.Region, "dc": m.Datacenter, "role": "nomad", "build": version.Nomad, "id": m.ID, "port": rpcPort, "rpc_addr": rpc,
			"drover": m.Version, "raft_vsn": "3", "vsn": "1", "expect": strconv.Itoa(m.Expect),
			"reads": m.Protocol.String(), "writes": strconv.Itoa(m.Writes),
		},
		ProtocolMin: 1, ProtocolMax: 5, ProtocolCur: 2, DelegateMin: 2, DelegateMax: 5, DelegateCur: 4,
	}
}

// Members implements agent.Servers.
func (o Operator) Members() (out []agent.Member) {
	refused := o.servers.Refused()
	for _, m := range o.servers.Members() {
		one := MemberOf(m)
		if why := refused[m.ID]; why != "" {
			one.Tags["refused"] = why
		}
		out = append(out, one)
	}
	return out
}

// Leader implements agent.Servers.
func (o Operator) Leader() string {
	leader, _ := o.servers.Leader()
	return leader.Address
}

// Join implements agent.Servers.
func (o Operator) Join(ctx context.Context, addresses []string) (int, error) {
	g := o.servers.Gossip()
	if g == nil {
		return 0, errAlone()
	}
	targets := make([]string, len(addresses))
	for i, address := range addresses {
		targets[i] = config.SerfTarget(address)
	}
	return g.Join(ctx, targets)
}

func errAlone() error {
	return drover.Errorf(drover.Invalid, "this server speaks with no other: set ports.serf, server.encrypt or bootstrap_expect")
}

// ForceLeave implements agent.Servers.
func (o Operator) ForceLeave(name string, prune bool) error {
	if g := o.servers.Gossip(); g != nil {
		return g.ForceLeave(name, prune)
	}
	return nil
}

// Peers implements agent.Servers.
func (o Operator) Peers() (out []string) {
	for _, s := range o.Raft().Servers {
		if s.Voter {
			out = append(out, s.Address)
		}
	}
	return out
}

// Raft implements agent.Servers.
func (o Operator) Raft() agent.RaftConfiguration {
	s := o.servers
	out := agent.RaftConfiguration{Index: s.deps.Store.Snapshot().Index()}
	peers, err := s.log.Peers()
	if err != nil {
		return out // the log is closing
	}
	for _, p := range peers {
		one := agent.RaftServer{ID: p.ID, Node: p.ID, Address: p.Address, Leader: p.Leader, Voter: p.Voter, RaftProtocol: "3"}
		if known, ok := s.ByID(p.ID); ok && (s.Clustered() || p.Leader) {
			one.Node, one.Address = known.Name+"."+known.Region, known.Address
		}
		out.Servers = append(out.Servers, one)
	}
	return out
}

// RemovePeer implements agent.Operator.
func (o Operator) RemovePeer(ctx context.Context, id string) error {
	peers, err := o.servers.log.Peers()
	if err != nil {
		return err
	}
	voters := slices.DeleteFunc(peers, func(p raftlog.Peer) bool { return !p.Voter })
	if len(voters) == 1 && voters[0].ID == id {
		return drover.Errorf(drover.Invalid, "%s is the only voter: it can't be removed", id)
	}
	return o.servers.log.RemoveServer(ctx, id)
}

// Transfer implements agent.Operator.
func (o Operator) Transfer(ctx context.Context, id string) error {
	if id == o.servers.cfg.Self.ID && o.servers.Leads() {
		return drover.Errorf(drover.Invalid, "server %s leads already", id)
	}
	return o.servers.log.Transfer(ctx, id)
}

// ListKeys implements agent.Keyring.
func (o Operator) ListKeys(context.Context) (agent.Keys, error) {
	return o.keys((*members.Members).ListKeys)
}

// InstallKey implements agent.Keyring.
func (o Operator) InstallKey(_ context.Context, key string) (agent.Keys, error) {
	return o.keys(func(m *members.Members) (members.Keys, error) { return m.InstallKey(key) })
}

// UseKey implements agent.Keyring.
func (o Operator) UseKey(_ context.Context, key string) (agent.Keys, error) {
	return o.keys(func(m *members.Members) (members.Keys, error) { return m.UseKey(key) })
}

// RemoveKey implements agent.Keyring.
func (o Operator) RemoveKey(_ context.Context, key string) (agent.Keys, error) {
	return o.keys(func(m *members.Members) (members.Keys, error) { return m.RemoveKey(key) })
}

func (o Operator) keys(ask func(*members.Members) (members.Keys, error)) (agent.Keys, error) {
	g := o.servers.Gossip()
	if g == nil {
		return agent.Keys{}, errAlone()
	}
	k, err := ask(g)
	return agent.Keys{Messages: k.Messages, Keys: k.Keys, PrimaryKeys: k.Primaries, NumNodes: k.Servers}, err
}

// Autopilot implements agent.Operator.
func (o Operator) Autopilot() cluster.Autopilot { return o.servers.Autopilot() }

// SetAutopilot implements agent.Operator.
func (o Operator) SetAutopilot(ctx context.Context, c cluster.Autopilot, cas bool) (bool, drover.Outcome, error) {
	index, result, err := o.servers.Propose(ctx, &command.SetAutopilot{Config: &c, CAS: cas})
	updated, _ := result.(bool)
	return updated, drover.Outcome{Index: index}, err
}

// AutopilotHealth implements agent.Operator.
func (o Operator) AutopilotHealth() agent.AutopilotHealth {
	s := o.servers
	if s.autopilot == nil {
		return s.aloneHealth()
	}
	h := s.autopilot.Health()
	out := agent.AutopilotHealth{Healthy: h.Healthy, FailureTolerance: h.FailureTolerance, Servers: []agent.ServerHealth{}, Voters: []string{}}
	for _, one := range h.Servers {
		if one.Leader {
			out.Leader = one.ID
		}
		if one.Voter {
			out.Voters = append(out.Voters, one.ID)
		}
		if one.ReadReplica {
			out.ReadReplicas = append(out.ReadReplicas, one.ID)
		}
		if one.Zone != "" && s.Autopilot().EnableRedundancyZones {
			out.RedundancyZones = withZone(out.RedundancyZones, one.Zone, one.ID, one.Voter, one.Healthy)
		}
		out.Servers = append(out.Servers, agent.ServerHealth{
			ID: one.ID, Name: one.Name, Address: one.Address, SerfStatus: one.Status, Version: one.Version, Leader: one.Leader,
			LastContact: one.LastContact.String(), LastTerm: one.LastTerm, LastIndex: one.LastIndex, Healthy: one.Healthy, Voter: one.Voter,
			StableSince: one.StableSince,
		})
	}
	return out
}

func withZone(zones map[string]agent.Zone, name, id string, voter, healthy bool) map[string]agent.Zone {
	if zones == nil {
		zones = map[string]agent.Zone{}
	}
	z, known := zones[name]
	if !known {
		z = agent.Zone{Servers: []string{}, Voters: []string{}, FailureTolerance: -1}
	}
	z.Servers = append(z.Servers, id)
	if voter {
		z.Voters = append(z.Voters, id)
	}
	if healthy {
		z.FailureTolerance++
	}
	zones[name] = z
	return zones
}

// aloneHealth is the health of a server that is alone: it is well if it takes writes.
func (s *Servers) aloneHealth() agent.AutopilotHealth {
	self, p, healthy := s.Member(), s.log.Progress(), s.Leads() && s.log.Stats().Sick == ""
	return agent.AutopilotHealth{
		Healthy: healthy, Leader: self.ID, Voters: []string{self.ID}, Servers: []agent.ServerHealth{{
			ID: self.ID, Name: self.FullName(), Address: self.RPCAddr, SerfStatus: string(members.Alive), Version: self.Version, Leader: true,
			LastContact: p.LastContact.String(), LastTerm: p.LastTerm, LastIndex: p.LastIndex, Healthy: healthy, Voter: true, StableSince: s.since,
		}},
	}
}

// Autopilot is how servers are kept healthy: as is stored, else as this server's configuration says.
func (s *Servers) Autopilot() cluster.Autopilot {
	if stored := s.deps.Store.Snapshot().Autopilot(); stored != nil {
		return *stored
	}
	return s.cfg.Autopilot
}

// seedAutopilot stores the configured settings unless some are stored: from then on the API is where they are changed. It tries
// again while the log refuses that, as while servers of an older program are in the cluster.
func (s *Servers) seedAutopilot(term context.Context) {
	if changed := s.deps.Store.Watch(tables.Cluster, ""); !s.log.Allows(command.KindSetAutopilot) { // as when the cluster has just begun
		clock.Await(term, s.deps.Clock, seedAgain, changed)
	}
	for said := ""; s.deps.Store.Snapshot().Autopilot() == nil; {
		first := s.cfg.Autopilot
		_, _, err := s.log.Propose(term, &command.SetAutopilot{Config: &first, CAS: true})
		if err != nil && term.Err() == nil && err.Error() != said {
			said = err.Error()
			s.deps.Logger.Info("the configuration of autopilot is not stored yet", "why", err)
		}
		if !clock.Sleep(term, s.deps.Clock, seedAgain) {
			return
		}
	}
	<-term.Done()
}

// seedAgain is how long the leader waits until it tries again to store a first configuration.
const seedAgain = 5 * time.Second
