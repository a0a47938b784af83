package cluster

import (
	"context"

	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/members"
	"github.com/drover-project/drover/internal/control/raftlog"
)

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
