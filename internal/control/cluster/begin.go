package cluster

import (
	"context"

	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/members"
)

// begin begins the cluster if it is this server's turn. One server alone begins it, with itself as the only voter, and adds the
// others as it adds those that come later. So two views of who the first servers are cannot make two clusters of one list.
func (c *Cluster) begin(ctx context.Context) {
	said := ""
	for ctx.Err() == nil && !c.deps.Log.Begun() {
		changed := c.deps.Gossip.Changed()
		turn, why := turn(c.deps.Gossip.Self(), c.deps.Gossip.List())
		if turn {
			why = c.agreed(ctx)
			turn = why == ""
		}
		if turn {
			if err := c.deps.Log.Bootstrap(); err != nil {
				why = err.Error()
			} else {
				c.deps.Logger.Info("beginning the cluster")
				return
			}
		}
		if why != said {
			c.deps.Logger.Info("not in a cluster yet", "why", why)
			said = why
		}
		clock.Await(ctx, c.deps.Clock, look, changed)
	}
}

// agreed asks all servers whether they, too, know of no cluster and take this server for the first. "" if all say so.
func (c *Cluster) agreed(ctx context.Context) (why string) {
	self := c.deps.Gossip.Self()
	for _, m := range first(self, c.deps.Gossip.List()) {
		if m.ID == self.ID || m.Status != members.Alive {
			continue
		}
		ctx, cancel := c.deps.Clock.WithTimeout(ctx, leaveTimeout)
		s, err := c.deps.Ask(ctx, m)
		cancel()
		switch {
		case err != nil:
			return "asking server " + m.Name + ": " + err.Error()
		case s.Begun:
			return "server " + m.Name + " belongs to a cluster: it adds this one"
		case s.Lowest != self.ID:
			return "server " + m.Name + " knows of others"
		}
	}
	return ""
}

// turn reports whether it is this server that begins the cluster; else why not.
func turn(self members.Self, list []members.Member) (bool, string) {
	if self.NonVoter {
		return false, "read replicas wait to be joined"
	}
	switch self.Expect {
	case 0:
		return false, "bootstrap_expect is 0: waiting to be joined"
	case 1:
		return true, ""
	}
	alive := 0
	for _, m := range first(self, list) {
		switch {
		case m.Cluster != "":
			return false, "server " + m.Name + " belongs to a cluster: it adds this one"
		case m.Expect != self.Expect && m.Expect != 0:
			return false, "server " + m.Name + " has another bootstrap_expect"
		case m.Status == members.Alive:
			alive++
		}
	}
	if alive < self.Expect {
		return false, "fewer servers than bootstrap_expect are there"
	}
	if low := lowest(self, list); low != self.ID {
		return false, "server " + low + " begins"
	}
	return true, ""
}

// first are the servers that may begin the cluster of this one's region; those that failed too, as they may be back.
func first(self members.Self, list []members.Member) (out []members.Member) {
	for _, m := range list {
		if m.Region == self.Region && !m.NonVoter && (m.Status == members.Alive || m.Status == members.Failed) {
			out = append(out, m)
		}
	}
	return out
}

// lowest returns the lowest id of those that may begin.
func lowest(self members.Self, list []members.Member) string {
	low := ""
	for _, m := range first(self, list) {
		if low == "" || m.ID < low {
			low = m.ID
		}
	}
	return low
}
