package cluster

import (
	"context"
	"fmt"
	"sync"
	"time"

	clusternoun "github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/autopilot"
	"github.com/drover-project/drover/internal/control/members"
	"github.com/drover-project/drover/internal/control/raftlog"
)

// lead keeps the servers for a term: it gives the cluster its id, follows gossip, raises the version of
// what is written, and runs autopilot. While this server takes no writes, it hands leadership over.
func (c *Cluster) lead(term context.Context) {
	var wait sync.WaitGroup
	defer wait.Wait()
	wait.Go(func() { c.handOver(term) })
	if !c.identify(term) {
		return
	}
	wait.Go(func() { c.deps.Autopilot(term) })
	for said := ""; term.Err() == nil; {
		changed := c.deps.Gossip.Changed()
		if why := c.raise(term); why != said && term.Err() == nil { // before servers are added: who cannot read it is not
			c.deps.Logger.Info("what the cluster writes", "version", c.deps.Identity.Version(), "because", why)
			said = why
		}
		c.reconcile(term)
		clock.Await(term, c.deps.Clock, lookAgain, changed)
	}
}

// lookAgain is how often a leader compares gossip and log without a change: a step that failed is tried again then.
const lookAgain = 10 * time.Second

// identify stores the cluster's id if it has none. It returns false if the term ended.
func (c *Cluster) identify(term context.Context) bool {
	for term.Err() == nil {
		if clusterID, _ := c.deps.Identity.Cluster(); clusterID != "" {
			return true
		}
		if err := c.deps.Identity.SetCluster(term, c.deps.IDs.New()); err != nil {
			c.deps.Logger.Warn("giving the cluster an id", "error", err)
			clock.Sleep(term, c.deps.Clock, look)
		}
	}
	return false
}

// reconcile brings the log's servers to what gossip says. A step that fails is tried again at the next look.
func (c *Cluster) reconcile(term context.Context) {
	defer c.took("nomad.nomad.leader.reconcile", c.deps.Clock.Now())
	peers, err := c.deps.Log.Peers()
	if err != nil {
		return // the log is closing
	}
	clusterID, _ := c.deps.Identity.Cluster()
	self := c.deps.Gossip.Self()
	self.Writes = c.deps.Identity.Version()
	for _, s := range steps(self, clusterID, peers, c.deps.Gossip.List()) {
		if err := c.do(term, s); err != nil {
			if term.Err() == nil {
				c.deps.Logger.Warn("changing the servers", "step", s.what, "server", s.name, "error", err)
			}
			return
		}
		c.deps.Logger.Info("changed the servers", "step", s.what, "server", s.name, "address", s.address)
	}
}

// took measures what began at a time.
func (c *Cluster) took(name string, began time.Time) {
	c.deps.Samples.Took(name, c.deps.Clock.Now().Sub(began))
}

// what a step does.
type what string

const (
	addVoter    what = "add voter"
	addNonvoter what = "add non-voter"
	remove      what = "remove"
)

// step is a change of the log's servers.
type step struct {
	what              what
	id, name, address string
}

func (c *Cluster) do(ctx context.Context, s step) error {
	defer c.took("nomad.nomad.leader.reconcileMember", c.deps.Clock.Now())
	switch s.what {
	case addVoter:
		return c.deps.Log.AddVoter(ctx, s.id, s.address)
	case addNonvoter:
		return c.deps.Log.AddNonvoter(ctx, s.id, s.address)
	default:
		return c.deps.Log.RemoveServer(ctx, s.id)
	}
}

// census is the servers as the log and gossip know them.
type census struct {
	self      members.Self
	clusterID string
	peers     map[string]raftlog.Peer
	voters    int // of the peers, with what the steps change
}

// steps returns what the leader has to change, in order: a server that has another's former address comes after that one is
// gone. A server that failed is autopilot's business.
func steps(self members.Self, clusterID string, peers []raftlog.Peer, list []members.Member) []step {
	c := &census{self: self, clusterID: clusterID, peers: map[string]raftlog.Peer{}}
	for _, p := range peers {
		c.peers[p.ID] = p
		if p.Voter {
			c.voters++
		}
	}
	alive := map[string]bool{}
	var removes, adds []step
	for _, m := range list {
		if m.Region != self.Region {
			continue
		}
		alive[m.ID] = m.Status == members.Alive
		if s, ok := c.leaving(m); ok {
			removes = append(removes, s)
		}
	}
	for _, m := range list {
		s, ok := c.coming(m)
		if !ok {
			continue
		}
		adds = append(adds, s)
		for _, p := range peers { // who had the address before
			if p.Address == s.address && p.ID != s.id && !alive[p.ID] {
				removes = append(removes, step{remove, p.ID, p.ID, p.Address})
			}
		}
	}
	return append(removes, adds...)
}

// leaving is the step for a server that left.
func (c *census) leaving(m members.Member) (step, bool) {
	p, in := c.peers[m.ID]
	if !in || m.Status != members.Left || m.ID == c.self.ID {
		return step{}, false
	}
	if p.Voter {
		c.voters--
	}
	return step{remove, m.ID, m.Name, p.Address}, true
}

// coming is the step for a server that is not in the log yet, or is at another address. The first servers vote at once; later
// ones when autopilot finds them stable. Who cannot read the log is not added.
func (c *census) coming(m members.Member) (step, bool) {
	p, in := c.peers[m.ID]
	ours := m.Region == c.self.Region && (m.Cluster == "" || m.Cluster == c.clusterID)
	if !ours || m.Status != members.Alive || m.RPCAddr == "" || in && p.Address == m.RPCAddr || !in && !m.Protocol.Has(max(1, c.self.Writes)) {
		return step{}, false
	}
	what := addNonvoter
	switch {
	case in && p.Voter:
		what = addVoter
	case !in && !m.NonVoter && c.voters < max(c.self.Expect, 1):
		what = addVoter
		c.voters++
	}
	return step{what, m.ID, m.Name, m.RPCAddr}, true
}

// Watch is what autopilot asks of the servers: as gossip sees them.
func (c *Cluster) Watch(config func() clusternoun.Autopilot) autopilot.Deps {
	return autopilot.Deps{
		Config: config,
		Servers: func() (out []autopilot.Known) {
			self := c.deps.Gossip.Self()
			for _, m := range c.deps.Gossip.List() {
				if m.Region == self.Region {
					out = append(out, autopilot.Known{
						ID: m.ID, Name: m.FullName(), Address: m.RPCAddr, Version: m.Version, Status: string(m.Status), ReadReplica: m.NonVoter, Zone: m.Zone,
					})
				}
			}
			return out
		},
		Progress: func(ctx context.Context, s autopilot.Known) (raftlog.Progress, error) {
			for _, m := range c.deps.Gossip.List() {
				if m.FullName() == s.Name {
					status, err := c.deps.Ask(ctx, m)
					if err == nil && status.ID != m.ID {
						return raftlog.Progress{}, errAnother
					}
					if version := c.deps.Identity.Version(); !status.Reads.Has(version) {
						status.Sick = fmt.Sprintf("its program reads versions %s of the log, and the cluster writes %d", status.Reads, version)
					}
					return status.Progress, err
				}
			}
			return raftlog.Progress{}, errUnknown
		},
		Remove: func(s autopilot.Known) {
			if err := c.deps.Gossip.ForceLeave(s.Name, false); err != nil {
				c.deps.Logger.Warn("taking a failed server out", "server", s.Name, "error", err)
			}
		},
	}
}
