package cluster

import (
	"context"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/members"
	"github.com/drover-project/drover/internal/control/raftlog"
)

// lead keeps the servers for a term: it gives the cluster its id, follows gossip, and runs autopilot.
func (c *Cluster) lead(term context.Context) {
	if !c.identify(term) {
		return
	}
	var wait sync.WaitGroup
	defer wait.Wait()
	wait.Go(func() { c.deps.Log.Autopilot(term, c.autopilot()) })
	for term.Err() == nil {
		changed := c.deps.Gossip.Changed()
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
	peers, err := c.deps.Log.Peers()
	if err != nil {
		return // the log is closing
	}
	clusterID, _ := c.deps.Identity.Cluster()
	for _, s := range steps(c.deps.Gossip.Self(), clusterID, peers, c.deps.Gossip.List()) {
		if err := c.do(term, s); err != nil {
			if term.Err() == nil {
				c.deps.Logger.Warn("changing the servers", "step", s.what, "server", s.name, "error", err)
			}
			return
		}
		c.deps.Logger.Info("changed the servers", "step", s.what, "server", s.name, "address", s.address)
	}
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
	switch s.what {
	case addVoter:
		return c.deps.Log.AddVoter(ctx, s.id, s.address)
	case addNonvoter:
		return c.deps.Log.AddNonvoter(ctx, s.id, s.address)
	default:
		return c.deps.Log.RemoveServer(ctx, s.id)
	}
}

// steps returns what the leader has to change, in order: a server that has another's former address comes after that one is
// gone. A server that failed is autopilot's business.
func steps(self members.Self, clusterID string, peers []raftlog.Peer, list []members.Member) (out []step) {
	byID, voters := map[string]raftlog.Peer{}, 0
	for _, p := range peers {
		byID[p.ID] = p
		if p.Voter {
			voters++
		}
	}
	known := map[string]members.Member{}
	for _, m := range list {
		if m.Region == self.Region {
			known[m.ID] = m
		}
	}
	var adds []step
	for _, m := range list {
		p, in := byID[m.ID]
		switch {
		case m.Region != self.Region || m.Cluster != "" && m.Cluster != clusterID:
			continue
		case m.Status == members.Left && in && m.ID != self.ID:
			out = append(out, step{remove, m.ID, m.Name, p.Address})
			if p.Voter {
				voters--
			}
		case m.Status != members.Alive || m.RPCAddr == "" || in && p.Address == m.RPCAddr:
			continue
		case in && p.Voter:
			adds = append(adds, step{addVoter, m.ID, m.Name, m.RPCAddr})
		case in || m.NonVoter || voters >= max(self.Expect, 1):
			adds = append(adds, step{addNonvoter, m.ID, m.Name, m.RPCAddr})
		default: // one of the first servers
			adds = append(adds, step{addVoter, m.ID, m.Name, m.RPCAddr})
			voters++
		}
	}
	for _, a := range adds { // who had the address before
		for _, p := range peers {
			if p.Address == a.address && p.ID != a.id && known[p.ID].Status != members.Alive {
				out = append(out, step{remove, p.ID, known[p.ID].Name, p.Address})
			}
		}
	}
	return append(out, adds...)
}

// autopilot gives autopilot the servers as gossip sees them.
func (c *Cluster) autopilot() raftlog.AutopilotDeps {
	return raftlog.AutopilotDeps{
		Config: c.deps.Autopilot,
		Servers: func() (out []raftlog.Known) {
			self := c.deps.Gossip.Self()
			for _, m := range c.deps.Gossip.List() {
				if m.Region == self.Region {
					out = append(out, raftlog.Known{
						ID: m.ID, Name: m.FullName(), Address: m.RPCAddr, Version: m.Version, Status: string(m.Status), ReadReplica: m.NonVoter, Zone: m.Zone,
					})
				}
			}
			return out
		},
		Progress: func(ctx context.Context, s raftlog.Known) (raftlog.Progress, error) {
			for _, m := range c.deps.Gossip.List() {
				if m.FullName() == s.Name {
					status, err := c.deps.Ask(ctx, m)
					return status.Progress, err
				}
			}
			return raftlog.Progress{}, errUnknown
		},
		Remove: func(s raftlog.Known) {
			if err := c.deps.Gossip.ForceLeave(s.Name, false); err != nil {
				c.deps.Logger.Warn("taking a failed server out", "server", s.Name, "error", err)
			}
		},
	}
}
