package raftlog

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"
	autopilot "github.com/hashicorp/raft-autopilot"
)

// AutopilotConfig is how the leader keeps the servers healthy. Its defaults are Nomad's.
type AutopilotConfig struct {
	CleanupDeadServers      bool          // remove servers that failed, while the others are a quorum; default true
	LastContactThreshold    time.Duration // a server that the leader did not reach for longer is unhealthy; default 200 ms
	MaxTrailingLogs         uint64        // a server that is more entries behind is unhealthy; default 250
	MinQuorum               uint          // never remove servers below so many voters; default 0
	ServerStabilizationTime time.Duration // how long a new server is healthy before it may vote; default 10 s
	RedundancyZones         bool          // one voter in each zone; the others of a zone stand by
	DisableUpgradeMigration bool          // accepted for Nomad's clients; servers are never migrated by version
}

// DefaultAutopilot is what holds until somebody configures autopilot.
func DefaultAutopilot() AutopilotConfig {
	return AutopilotConfig{
		CleanupDeadServers: true, LastContactThreshold: 200 * time.Millisecond, MaxTrailingLogs: 250, ServerStabilizationTime: 10 * time.Second,
	}
}

// Known is a server as gossip sees it.
type Known struct {
	ID, Name, Address, Version string
	Status                     string // alive, failed or left; anything else is unknown
	ReadReplica                bool   // never votes
	Zone                       string
}

// Progress is where a server's log is.
type Progress struct {
	LastContact time.Duration // since it heard of the leader
	LastTerm    uint64
	LastIndex   uint64
}

// Healthy is a server as autopilot judges it.
type Healthy struct {
	Known
	Progress
	Leader, Voter bool
	Healthy       bool
	StableSince   time.Time // since when Healthy is what it is
}

// Health is the servers as autopilot judges them.
type Health struct {
	Healthy          bool
	FailureTolerance int // how many voters may fail at once without an outage
	Servers          []Healthy
}

// AutopilotDeps are what autopilot asks.
type AutopilotDeps struct {
	Config  func() AutopilotConfig
	Servers func() []Known
	// Progress asks another server where its log is.
	Progress func(ctx context.Context, s Known) (Progress, error)
	// Remove has gossip forget a server that failed; it must not block.
	Remove func(s Known)
}

// Pace of autopilot: how often it asks the servers, and how often it acts.
const (
	autopilotAsks = 2 * time.Second
	autopilotActs = 10 * time.Second
)

// Autopilot keeps the servers healthy until ctx ends: it promotes servers that joined and are stable, and removes those that
// failed. It runs at the leader, for its term. It is no method of Log's: the linker keeps all methods, and so the library, even
// in a program that never calls it.
func Autopilot(ctx context.Context, l *Log, deps AutopilotDeps) {
	runAutopilot(ctx, l, deps, autopilotAsks, autopilotActs)
}

func runAutopilot(ctx context.Context, l *Log, deps AutopilotDeps, asks, acts time.Duration) {
	p := &pilot{log: l, deps: deps}
	a := autopilot.New(l.raft, p, autopilot.WithPromoter(&promoter{servers: p.zones}), autopilot.WithLogger(newLogger(l.log)),
		autopilot.WithUpdateInterval(asks), autopilot.WithReconcileInterval(acts))
	a.Start(ctx)
	<-ctx.Done()
	<-a.Stop()
	l.judged.Store(nil)
}

// Health returns how autopilot judges the servers. It is unhealthy and empty where autopilot does not run or has not asked yet.
func (l *Log) Health() Health {
	if h := l.judged.Load(); h != nil {
		return *h
	}
	return Health{}
}

// Progress is where this server's log is.
func (l *Log) Progress() Progress {
	return Progress{LastContact: l.LastContact(), LastTerm: l.Stats().Term, LastIndex: l.raft.LastIndex()}
}

// pilot answers what autopilot asks.
type pilot struct {
	log  *Log
	deps AutopilotDeps

	mu    sync.Mutex
	known map[raft.ServerID]Known // guarded by mu: as of the last question
}

// AutopilotConfig implements autopilot.ApplicationIntegration.
func (p *pilot) AutopilotConfig() *autopilot.Config {
	c := p.deps.Config()
	return &autopilot.Config{
		CleanupDeadServers: c.CleanupDeadServers, LastContactThreshold: c.LastContactThreshold, MaxTrailingLogs: c.MaxTrailingLogs,
		MinQuorum: c.MinQuorum, ServerStabilizationTime: c.ServerStabilizationTime, Ext: c.RedundancyZones,
	}
}

// KnownServers implements autopilot.ApplicationIntegration. Who is not in the answer is taken out of the cluster: servers that
// left. A server of which gossip knows nothing is in it, as a leader that just started may not have heard of it yet.
func (p *pilot) KnownServers() map[raft.ServerID]*autopilot.Server {
	_, leader := p.log.raft.LeaderWithID()
	out, known := map[raft.ServerID]*autopilot.Server{}, map[raft.ServerID]Known{}
	list := p.deps.Servers()
	if peers, err := p.log.Peers(); err == nil {
		for _, one := range peers {
			if !slices.ContainsFunc(list, func(k Known) bool { return k.ID == one.ID }) {
				list = append(list, Known{ID: one.ID, Address: one.Address})
			}
		}
	}
	for _, s := range list {
		id := raft.ServerID(s.ID)
		known[id] = s
		if s.Status == string(autopilot.NodeLeft) {
			continue
		}
		status := autopilot.NodeUnknown
		if slices.Contains([]string{"alive", "failed"}, s.Status) {
			status = autopilot.NodeStatus(s.Status)
		}
		kind := autopilot.NodeVoter
		if s.ReadReplica {
			kind = readReplica
		}
		out[id] = &autopilot.Server{
			ID: id, NodeType: kind, Name: s.Name, Address: raft.ServerAddress(s.Address), NodeStatus: status, Version: s.Version, RaftVersion: 3, IsLeader: id == leader,
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known = known
	return out
}

func (p *pilot) zones() map[raft.ServerID]Known {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.known
}

// FetchServerStats implements autopilot.ApplicationIntegration. Who does not answer is left out, and so is unhealthy.
func (p *pilot) FetchServerStats(ctx context.Context, servers map[raft.ServerID]*autopilot.Server) map[raft.ServerID]*autopilot.ServerStats {
	known := p.zones()
	out := map[raft.ServerID]*autopilot.ServerStats{}
	var mu sync.Mutex
	var wait sync.WaitGroup
	for id := range servers {
		wait.Go(func() { // ends with ctx
			progress, err := p.progress(ctx, known[id])
			if err != nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			out[id] = &autopilot.ServerStats{LastContact: progress.LastContact, LastTerm: progress.LastTerm, LastIndex: progress.LastIndex}
		})
	}
	wait.Wait()
	return out
}

func (p *pilot) progress(ctx context.Context, s Known) (Progress, error) {
	if s.ID == p.log.cfg.ID {
		return p.log.Progress(), nil
	}
	return p.deps.Progress(ctx, s)
}

// RemoveFailedServer implements autopilot.ApplicationIntegration.
func (p *pilot) RemoveFailedServer(s *autopilot.Server) {
	if known, ok := p.zones()[s.ID]; ok {
		p.deps.Remove(known)
	}
}

// NotifyState implements autopilot.ApplicationIntegration.
func (p *pilot) NotifyState(s *autopilot.State) {
	known, h := p.zones(), Health{Healthy: s.Healthy, FailureTolerance: s.FailureTolerance}
	for id, one := range s.Servers {
		k := known[id]
		k.ID, k.Address = string(id), string(one.Server.Address)
		h.Servers = append(h.Servers, Healthy{
			Known:    k,
			Progress: Progress{LastContact: one.Stats.LastContact, LastTerm: one.Stats.LastTerm, LastIndex: one.Stats.LastIndex},
			Leader:   one.State == autopilot.RaftLeader, Voter: one.HasVotingRights(), Healthy: one.Health.Healthy, StableSince: one.Health.StableSince,
		})
	}
	slices.SortFunc(h.Servers, func(a, b Healthy) int { return cmp.Compare(a.ID, b.ID) })
	p.log.judged.Store(&h)
}
