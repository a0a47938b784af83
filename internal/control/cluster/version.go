package cluster

import (
	"context"
	"fmt"

	"github.com/drover-project/drover/internal/control/members"
	"github.com/drover-project/drover/internal/control/raftlog"
)

// raise raises the version of what is written to the highest that every server reads. It returns why the version is what it is.
// Servers are added by the same goroutine: none comes in between that was not looked at.
func (c *Cluster) raise(term context.Context) (why string) {
	peers, err := c.deps.Log.Peers()
	if err != nil {
		return err.Error()
	}
	clusterID, _ := c.deps.Identity.Cluster()
	self, has := c.deps.Gossip.Self(), c.deps.Identity.Version()
	all := concerned(self, clusterID, peers, c.deps.Gossip.List())
	to, why := readable(self, peers, all)
	if to <= has {
		return why
	}
	for _, m := range all { // what it announced may be what another program announced that ran there before
		if m.ID == self.ID || m.Status != members.Alive {
			continue
		}
		ctx, cancel := c.deps.Clock.WithTimeout(term, leaveTimeout)
		s, err := c.deps.Ask(ctx, m)
		cancel()
		switch {
		case err != nil:
			return fmt.Sprintf("server %s does not say what it reads: %v", m.Name, err)
		case !s.Reads.Has(to):
			return fmt.Sprintf("server %s reads versions %s", m.Name, s.Reads)
		}
	}
	if err := c.deps.Identity.Raise(term, to); err != nil {
		return "raising it failed: " + err.Error()
	}
	return why
}

// concerned are the servers of the cluster that gossip knows, and those that are about to be: who left is forgotten, who failed
// may be back.
func concerned(self members.Self, clusterID string, peers []raftlog.Peer, list []members.Member) (out []members.Member) {
	in := map[string]bool{}
	for _, p := range peers {
		in[p.ID] = true
	}
	for _, m := range list {
		ours := m.Region == self.Region && (m.Cluster == "" || m.Cluster == clusterID) && m.Status != members.Left
		if ours || in[m.ID] {
			out = append(out, m)
		}
	}
	return out
}

// readable returns the highest version that all servers read, and why it is not a higher one.
func readable(self members.Self, peers []raftlog.Peer, all []members.Member) (version int, why string) {
	version, why = max(1, self.Protocol.Max), "this program reads no higher one"
	known := map[string]bool{self.ID: true}
	for _, m := range all {
		known[m.ID] = true
		if highest := max(1, m.Protocol.Max); highest < version {
			version, why = highest, fmt.Sprintf("server %s reads versions %s", m.Name, m.Protocol)
		}
	}
	for _, p := range peers {
		if !known[p.ID] {
			return 1, fmt.Sprintf("nobody knows what server %s reads, which gossip does not know", p.ID)
		}
	}
	return version, why
}
