package autopilot

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
	library "github.com/hashicorp/raft-autopilot"

	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/control/raftlog"
)

// Known is a server as gossip sees it.
type Known struct {
	ID, Name, Address, Version string
	Status                     string // alive, failed or left; anything else is unknown
	ReadReplica                bool   // never votes
	Zone                       string
}

// Healthy is a server as autopilot judges it.
type Healthy struct {
	Known
	raftlog.Progress
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

// Deps are what autopilot asks.
type Deps struct {
	Config  func() cluster.Autopilot
	Servers func() []Known
	// Progress asks another server where its log is.
	Progress func(ctx context.Context, s Known) (raftlog.Progress, error)
	// Remove has gossip forget a server that failed; it must not block.
	Remove func(s Known)
}

// How often autopilot asks the servers, and how often it acts.
const (
	asksEvery = 2 * time.Second
	actsEvery = 10 * time.Second
)

// Autopilot keeps the servers of a log healthy.
type Autopilot struct {
	log        *raftlog.Log
	deps       Deps
	asks, acts time.Duration
	judged     atomic.Pointer[Health] // nil while it does not run

	mu       sync.Mutex
	known    map[raft.ServerID]Known            // guarded by mu: as of the last question
	progress map[raft.ServerID]raftlog.Progress // guarded by mu: as of the last answer

	removes chan Known // failed servers that are to be taken out, if they do not answer
}

// New returns the autopilot of a log. Run has it work.
func New(l *raftlog.Log, deps Deps) *Autopilot {
	return &Autopilot{
		log: l, deps: deps, asks: asksEvery, acts: actsEvery, progress: map[raft.ServerID]raftlog.Progress{}, removes: make(chan Known, 1),
	}
}

// Run promotes servers that joined and are stable, and removes those that failed, until ctx ends. It runs at the leader, for its
// term.
func (p *Autopilot) Run(ctx context.Context) {
	select {
	case <-p.removes: // of a term before: there may be others by now, and fewer than a quorum without it
	default:
	}
	a := library.New(p.log.Raft(), p, library.WithPromoter(&promoter{servers: p.zones}), library.WithLogger(p.log.Logger()),
		library.WithUpdateInterval(p.asks), library.WithReconcileInterval(p.acts))
	a.Start(ctx)
	for ctx.Err() == nil {
		select {
		case s := <-p.removes:
			p.removeSilent(ctx, s)
		case <-ctx.Done():
		}
	}
	<-a.Stop()
	p.judged.Store(nil)
}

// Health returns how the servers are judged. It is unhealthy and empty where autopilot does not run or has not asked yet.
func (p *Autopilot) Health() Health {
	if h := p.judged.Load(); h != nil {
		return *h
	}
	return Health{}
}

// AutopilotConfig implements ApplicationIntegration.
func (p *Autopilot) AutopilotConfig() *library.Config {
	c := p.deps.Config()
	return &library.Config{
		CleanupDeadServers: c.CleanupDeadServers, LastContactThreshold: c.LastContactThreshold, MaxTrailingLogs: c.MaxTrailingLogs,
		MinQuorum: c.MinQuorum, ServerStabilizationTime: c.ServerStabilizationTime, Ext: c.EnableRedundancyZones,
	}
}

// KnownServers implements ApplicationIntegration. Who is not in the answer is taken out of the cluster: servers that
// left. A server of which gossip knows nothing is in it, as a leader that just started may not have heard of it yet.
func (p *Autopilot) KnownServers() map[raft.ServerID]*library.Server {
	_, leader := p.log.Raft().LeaderWithID()
	out, known := map[raft.ServerID]*library.Server{}, map[raft.ServerID]Known{}
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
		if s.Status == string(library.NodeLeft) {
			continue
		}
		status := library.NodeUnknown
		if slices.Contains([]string{"alive", "failed"}, s.Status) {
			status = library.NodeStatus(s.Status)
		}
		kind := library.NodeVoter
		if s.ReadReplica {
			kind = readReplica
		}
		out[id] = &library.Server{
			ID: id, NodeType: kind, Name: s.Name, Address: raft.ServerAddress(s.Address), NodeStatus: status, Version: s.Version,
			RaftVersion: 3, IsLeader: id == leader,
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known = known
	return out
}

func (p *Autopilot) zones() map[raft.ServerID]Known {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.known
}

// never is the last contact of a server that the library shall find unhealthy.
const never = -1

// FetchServerStats implements ApplicationIntegration. Who does not answer is left out, and so is unhealthy once gossip says that
// it failed. Who takes no writes would be no good leader, and is unhealthy whatever its log has.
func (p *Autopilot) FetchServerStats(ctx context.Context, list map[raft.ServerID]*library.Server) map[raft.ServerID]*library.ServerStats {
	known := p.zones()
	out := map[raft.ServerID]*library.ServerStats{}
	var mu sync.Mutex
	var wait sync.WaitGroup
	for id := range list {
		wait.Go(func() { // ends with ctx
			progress, err := p.ask(ctx, known[id])
			if err != nil {
				return
			}
			stats := &library.ServerStats{LastContact: progress.LastContact, LastTerm: progress.LastTerm, LastIndex: progress.LastIndex}
			if progress.Sick != "" {
				stats.LastContact = never
			}
			p.mu.Lock()
			p.progress[id] = progress
			p.mu.Unlock()
			mu.Lock()
			defer mu.Unlock()
			out[id] = stats
		})
	}
	wait.Wait()
	return out
}

func (p *Autopilot) ask(ctx context.Context, s Known) (raftlog.Progress, error) {
	if s.ID == p.log.ID() {
		return p.log.Progress(), nil
	}
	return p.deps.Progress(ctx, s)
}

// RemoveFailedServer implements ApplicationIntegration. It does not wait: one that finds another under way is called again.
func (p *Autopilot) RemoveFailedServer(s *library.Server) {
	if known, ok := p.zones()[s.ID]; ok {
		select {
		case p.removes <- known:
		default:
		}
	}
}

// removeSilent takes a server out that failed, unless it answers. Gossip learns some seconds late that one is back which was cut off. To
// take that out then would leave one server less to bear the next failure, just when all are there.
func (p *Autopilot) removeSilent(ctx context.Context, s Known) {
	limit, cancel := context.WithTimeout(ctx, p.asks/2)
	defer cancel()
	if _, err := p.ask(limit, s); err == nil || ctx.Err() != nil {
		return
	}
	p.deps.Remove(s)
}

// NotifyState implements ApplicationIntegration.
func (p *Autopilot) NotifyState(s *library.State) {
	known, h := p.zones(), Health{Healthy: s.Healthy, FailureTolerance: s.FailureTolerance}
	for id, one := range s.Servers {
		k := known[id]
		k.ID, k.Address = string(id), string(one.Server.Address)
		p.mu.Lock()
		progress := p.progress[id]
		p.mu.Unlock()
		h.Servers = append(h.Servers, Healthy{
			Known: k, Progress: progress,
			Leader: one.State == library.RaftLeader, Voter: one.HasVotingRights(),
			Healthy: one.Health.Healthy, StableSince: one.Health.StableSince,
		})
	}
	slices.SortFunc(h.Servers, func(a, b Healthy) int { return cmp.Compare(a.ID, b.ID) })
	p.judged.Store(&h)
}
