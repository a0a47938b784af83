package servers

import (
	"cmp"
	"errors"
	"maps"
	"sync"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/members"
	"github.com/drover-project/drover/internal/peer"
)

// identity is who this server says that it is when it dials another one or is dialled.
func (s *Servers) identity() peer.Identity {
	out := peer.Identity{
		Server: s.cfg.Self.ID, Region: s.cfg.Self.Region, Cluster: s.kept, Oldest: reads.Min, Newest: reads.Max,
	}
	if c := s.deps.Store.Snapshot().Cluster(); c != nil {
		out.Cluster, out.Writes = cmp.Or(c.ID, out.Cluster), c.Version
	}
	return out
}

// at says which server is meant when the address is dialled. It is one that is alive and that gossip knows there, else one of
// the log.
func (s *Servers) at(address string) (means peer.Identity) {
	if g := s.gossip.Load(); g != nil {
		for _, m := range g.List() {
			if m.RPCAddr == address && (m.Status == members.Alive || means.Server == "") {
				means = peer.Identity{Server: m.ID, Region: m.Region, Cluster: m.Cluster}
			}
		}
	}
	if means.Server != "" || s.log == nil {
		return means
	}
	peers, err := s.log.Peers()
	if err != nil {
		return means // the log is closing
	}
	for _, p := range peers {
		if p.Address == address {
			means = s.identity()
			means.Server = p.ID
		}
	}
	return means
}

// refusals remembers which servers of the log did not take this one for who it is, or were not who was meant.
type refusals struct {
	mu   sync.Mutex
	list map[string]string // guarded by mu: why, by the id of who was meant
}

// note remembers how dialling a server went. Others say of a server that does not answer that it is gone.
func (r *refusals) note(id string, err error) {
	refused, _ := errors.AsType[*peer.Refused](err)
	r.mu.Lock()
	defer r.mu.Unlock()
	if refused == nil && drover.CodeOf(err) != drover.Unauthorized {
		delete(r.list, id)
		return
	}
	if r.list == nil {
		r.list = map[string]string{}
	}
	r.list[id] = err.Error()
}

// Refused says why servers of the log cannot be sent entries although something answers at their address, by their ids. The leader
// dials all of them, others only while there is none.
func (s *Servers) Refused() map[string]string {
	s.refusals.mu.Lock()
	out := maps.Clone(s.refusals.list)
	s.refusals.mu.Unlock()
	votes := s.votes()
	maps.DeleteFunc(out, func(id, _ string) bool { _, in := votes[id]; return !in })
	return out
}
