package members

import (
	"log/slog"
	"sync"

	"github.com/hashicorp/serf/serf"

	"github.com/drover-project/drover"
)

// otherCluster is in the error by which a server of another cluster is refused. The library hands on the text only.
const otherCluster = "belongs to another cluster"

// otherVersion is in the error by which a server is refused that cannot read the cluster's log.
const otherVersion = "writes version"

// merge decides whose gossip is heard.
type merge struct {
	log *slog.Logger

	mu      sync.Mutex
	self    Self            // guarded by mu
	refused map[string]bool // guarded by mu: members whose refusal was logged, by name and reason
}

func newMerge(self Self, log *slog.Logger) *merge {
	return &merge{log: log, self: self, refused: map[string]bool{}}
}

func (m *merge) become(self Self) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.self = self
}

// NotifyMerge implements serf.MergeDelegate: an error refuses all that the members say. Each member of a list is asked about
// alone, too, before it is believed. So a list with a server that reads other versions is heard, and that server alone is not.
func (m *merge) NotifyMerge(list []*serf.Member) error {
	for _, one := range list {
		if one.Status == serf.StatusLeft {
			continue // that it goes may be heard from anybody
		}
		if err := m.check(one, len(list) == 1); err != nil {
			m.tell(one.Name, err)
			return err
		}
	}
	return nil
}

// tell logs a refusal once for each member and reason: gossip asks again and again.
func (m *merge) tell(name string, err error) {
	const most = 1000 // more are not told apart
	key := name + "\x00" + err.Error()
	m.mu.Lock()
	again := m.refused[key] || len(m.refused) >= most
	if !again {
		m.refused[key] = true
	}
	m.mu.Unlock()
	if !again {
		m.log.Warn("refusing a server's gossip", "name", name, "error", err)
	}
}

// check refuses a member that is no server of Drover's, another server under this one's name or id, and one that belongs to
// another cluster of this region. It refuses all members of a cluster whose log this program cannot read. A member that is
// alone is refused, too, if it cannot read this cluster's log.
func (m *merge) check(one *serf.Member, alone bool) error {
	member, err := parse(*one)
	if err != nil {
		return err
	}
	m.mu.Lock()
	self := m.self
	m.mu.Unlock()
	switch {
	case member.Region != self.Region:
		return nil
	case (member.ID == self.ID) != (member.Name == self.Name):
		return drover.Errorf(drover.Conflict, "server %q with id %s: this server is %q with id %s; each needs a name and an id of its own",
			member.Name, member.ID, self.Name, self.ID)
	case member.Cluster != "" && self.Cluster != "" && member.Cluster != self.Cluster:
		return drover.Errorf(drover.Conflict, "server %q %s of region %s: its cluster is %s and ours is %s", member.Name, otherCluster,
			self.Region, member.Cluster, self.Cluster)
	case member.ID == self.ID:
		return nil
	case member.Writes > 0 && !self.Protocol.Has(member.Writes):
		return drover.Errorf(drover.Conflict, "the cluster of server %q %s %d, and this server's program reads %s: start another program",
			member.Name, otherVersion, member.Writes, self.Protocol)
	case alone && self.Writes > 0 && !member.Protocol.Has(self.Writes):
		return drover.Errorf(drover.Conflict, "this cluster %s %d, and server %q of version %q reads %s: start another program there",
			otherVersion, self.Writes, member.Name, member.Version, member.Protocol)
	}
	return nil
}
