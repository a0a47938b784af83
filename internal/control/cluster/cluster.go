package cluster

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/members"
	"github.com/drover-project/drover/internal/control/raftlog"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/telemetry"
)

// Log is the replicated log; *raftlog.Log implements it.
type Log interface {
	Bootstrap() error
	Begun() bool
	AddVoter(ctx context.Context, id, address string) error
	AddNonvoter(ctx context.Context, id, address string) error
	RemoveServer(ctx context.Context, id string) error
	Transfer(ctx context.Context, id string) error
	Peers() ([]raftlog.Peer, error)
	Follow(ctx context.Context, lead func(term context.Context))
}

// Gossip is what the servers know of each other; *members.Members implements it.
type Gossip interface {
	Self() members.Self
	List() []members.Member
	Changed() <-chan struct{}
	Announce(change func(*members.Self)) error
	Join(ctx context.Context, addresses []string) (int, error)
	ForceLeave(name string, prune bool) error
	Leave() error
}

// Identity is where the cluster's id and version are kept: in the replicated state.
type Identity interface {
	// Cluster returns the id, "" if there is none yet, and a channel that is closed when that or the version may have changed.
	Cluster() (clusterID string, changed <-chan struct{})
	// SetCluster stores the id unless there is one. Only on the leader.
	SetCluster(ctx context.Context, clusterID string) error
	// Version is that of what may be written. It only rises.
	Version() int
	// Raise raises the version. Only on the leader.
	Raise(ctx context.Context, version int) error
}

// Status is what a server says of itself when another asks.
type Status struct {
	ID     string
	Begun  bool   // it belongs to a cluster
	Lowest string // the id of the server that it would let begin the cluster
	Reads  members.Versions
	raftlog.Progress
}

// Deps are what a Cluster works with.
type Deps struct {
	Log      Log
	Gossip   Gossip
	Identity Identity
	// Ask asks another server for its status.
	Ask      func(ctx context.Context, m members.Member) (Status, error)
	Progress func() raftlog.Progress
	// Autopilot keeps the servers healthy for a term: Run of one that has Watch.
	Autopilot func(term context.Context)

	Clock   clock.Clock
	IDs     id.Source
	Logger  *slog.Logger
	Samples *telemetry.Samples // takes how long it takes to bring the log to what gossip says; may be nil
}

// Config says how the cluster is found.
type Config struct {
	RetryJoin     []string      // addresses of gossip that are tried until one answers
	RetryInterval time.Duration // between two tries; default 30 s
	RetryMax      int           // tries; 0 = without end
}

// Cluster is this server's part in the cluster.
type Cluster struct {
	cfg  Config
	deps Deps
}

// New returns the part; Run plays it.
func New(cfg Config, deps Deps) *Cluster {
	if cfg.RetryInterval == 0 {
		cfg.RetryInterval = 30 * time.Second
	}
	return &Cluster{cfg, deps}
}

// look is how often what gossip says is looked at without a change: a step that failed is tried again then.
const look = time.Second

// Run joins, begins and leads as it has to until ctx ends. Errors: Unavailable if all tries to join failed.
func (c *Cluster) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wait sync.WaitGroup
	wait.Go(func() {
		if err := c.join(ctx); err != nil {
			cancel(err)
		}
	})
	wait.Go(func() { c.begin(ctx) })
	wait.Go(func() { c.announce(ctx) })
	wait.Go(func() { c.deps.Log.Follow(ctx, c.lead) })
	wait.Wait()
	if err := context.Cause(ctx); err != nil && drover.CodeOf(err) == drover.Unavailable {
		return err
	}
	return nil
}

// join tries the configured servers until another one than this server itself, which may be among them, answers.
func (c *Cluster) join(ctx context.Context) error {
	if len(c.cfg.RetryJoin) == 0 {
		return nil
	}
	for tries := 1; ; tries++ {
		n, err := c.deps.Gossip.Join(ctx, c.cfg.RetryJoin)
		if n > 0 && slices.ContainsFunc(c.deps.Gossip.List(), func(m members.Member) bool {
			return m.ID != c.deps.Gossip.Self().ID && m.Status == members.Alive
		}) {
			c.deps.Logger.Info("joined", "servers", n)
			return nil
		}
		if err == nil {
			err = drover.Errorf(drover.Unavailable, "only this server itself answers")
		}
		if c.cfg.RetryMax > 0 && tries >= c.cfg.RetryMax && ctx.Err() == nil {
			return drover.Errorf(drover.Unavailable, "server_join: no server answered in %d tries: %w", tries, err)
		}
		level := slog.LevelWarn
		if tries == 1 { // the others may be about to start, too
			level = slog.LevelInfo
		}
		c.deps.Logger.Log(ctx, level, "no server to join answers; trying again", "in", c.cfg.RetryInterval, "error", err)
		if !clock.Sleep(ctx, c.deps.Clock, c.cfg.RetryInterval) {
			return nil
		}
	}
}

// announce tells the others which cluster this server belongs to, and what that writes, as soon as the state says so.
func (c *Cluster) announce(ctx context.Context) {
	for ctx.Err() == nil {
		clusterID, changed := c.deps.Identity.Cluster()
		if clusterID != "" {
			version := c.deps.Identity.Version()
			if err := c.deps.Gossip.Announce(func(s *members.Self) { s.Cluster, s.Writes = clusterID, version }); err != nil {
				c.deps.Logger.Warn("telling the other servers of the cluster", "error", err)
				if !clock.Sleep(ctx, c.deps.Clock, look) {
					return
				}
				continue
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// Status is what this server says to another that asks.
func (c *Cluster) Status() Status {
	self := c.deps.Gossip.Self()
	return Status{
		ID: self.ID, Begun: c.deps.Log.Begun(), Lowest: lowest(self, c.deps.Gossip.List()), Reads: self.Protocol, Progress: c.deps.Progress(),
	}
}

// Servers are the rpc addresses of the region's servers that are alive: where nodes may dial.
func (c *Cluster) Servers() (addresses []string) {
	self := c.deps.Gossip.Self()
	for _, m := range c.deps.Gossip.List() {
		if m.Region == self.Region && m.Status == members.Alive && m.RPCAddr != "" {
			addresses = append(addresses, m.RPCAddr)
		}
	}
	return addresses
}

var (
	errUnknown = drover.Errorf(drover.NotFound, "gossip knows nothing of the server")
	errAnother = drover.Errorf(drover.NotFound, "another server has its address by now")
)
