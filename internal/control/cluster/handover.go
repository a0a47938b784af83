package cluster

import (
	"context"
	"time"

	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/members"
	"github.com/drover-project/drover/internal/control/raftlog"
)

// leaveTimeout bounds how long a server that leaves or stops waits for another leader.
const leaveTimeout = 5 * time.Second

// Leave hands leadership over if this server has it, and tells the others that it goes for good: then they go on without it,
// and take it out of the cluster.
func (c *Cluster) Leave(ctx context.Context) error {
	c.HandOver(ctx)
	return c.deps.Gossip.Leave()
}

// HandOver makes another server the leader if this one is it and another votes, within some seconds: one that takes writes, or
// whichever follows best. A leader that stops does so: else a write would have to wait until its silence is noticed.
func (c *Cluster) HandOver(ctx context.Context) {
	ctx, cancel := c.deps.Clock.WithTimeout(ctx, leaveTimeout)
	defer cancel()
	peers, err := c.deps.Log.Peers()
	if err != nil {
		return // the log is closed
	}
	self, leads, others := c.deps.Gossip.Self().ID, false, 0
	for _, p := range peers {
		leads = leads || p.Leader && p.ID == self
		if p.Voter && p.ID != self {
			others++
		}
	}
	if !leads || others == 0 {
		return
	}
	asking, done := c.deps.Clock.WithTimeout(ctx, leaveTimeout/2)
	to, _ := c.successor(asking)
	done()
	if err := c.deps.Log.Transfer(ctx, to); err != nil {
		c.deps.Logger.Warn("handing leadership over", "error", err)
	}
}

// handOver gives leadership to a server that takes writes when this one takes none: its disk is full, or it cannot read its log.
// It ends with the term.
func (c *Cluster) handOver(term context.Context) {
	for said := ""; term.Err() == nil; clock.Sleep(term, c.deps.Clock, look) {
		sick := c.deps.Progress().Sick
		if sick == "" {
			continue
		}
		to, why := c.successor(term)
		if to != "" {
			c.deps.Logger.Warn("handing leadership over", "to", to, "because", sick)
			if err := c.deps.Log.Transfer(term, to); err != nil {
				why = err.Error()
			}
		}
		if why != said && term.Err() == nil {
			c.deps.Logger.Warn("this server leads and takes no writes", "because", sick, "stays", why)
			said = why
		}
	}
}

// successor asks the other voters how they are, and returns the id of the one to lead; else why there is none.
func (c *Cluster) successor(ctx context.Context) (serverID, why string) {
	peers, err := c.deps.Log.Peers()
	if err != nil {
		return "", err.Error()
	}
	self, list := c.deps.Gossip.Self(), c.deps.Gossip.List()
	answers := map[string]Status{}
	for _, m := range voters(self, peers, list) {
		ctx, cancel := c.deps.Clock.WithTimeout(ctx, leaveTimeout)
		if s, err := c.deps.Ask(ctx, m); err == nil { // who does not answer is no successor
			answers[m.ID] = s
		}
		cancel()
	}
	if to := fittest(answers); to != "" {
		return to, ""
	}
	return "", "no other voter answers that it takes writes"
}

// voters are the other servers that vote and are alive.
func voters(self members.Self, peers []raftlog.Peer, list []members.Member) (out []members.Member) {
	votes := map[string]bool{}
	for _, p := range peers {
		votes[p.ID] = p.Voter
	}
	for _, m := range list {
		if votes[m.ID] && m.ID != self.ID && m.Region == self.Region && m.Status == members.Alive {
			out = append(out, m)
		}
	}
	return out
}

// fittest returns the id of the server that takes writes and has most of the log; "" if there is none.
func fittest(answers map[string]Status) (serverID string) {
	for id, s := range answers {
		best, found := answers[serverID]
		if s.Sick == "" && (!found || s.LastIndex > best.LastIndex || s.LastIndex == best.LastIndex && id < serverID) {
			serverID = id
		}
	}
	return serverID
}
