package servers

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/cluster"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/members"
	"github.com/drover-project/drover/internal/control/raftlog"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/peercall"
)

// Procedures that servers call each other by.
const (
	procStatus  = "Servers.Status"
	procPropose = "Log.Propose"
)

// hold is how long a proposal waits for a leader.
const hold = 5 * time.Second

// Self is this server.
func (s *Servers) Self() Server {
	self := s.cfg.Self
	return Server{self.ID, self.Name, self.Region, self.RPCAddr, self.HTTPAddr, true, s.votes()[self.ID] || s.port == nil}
}

// Member is this server as gossip knows it.
func (s *Servers) Member() members.Member {
	for _, m := range s.Members() {
		if m.ID == s.cfg.Self.ID {
			return m
		}
	}
	return members.Member{Self: s.cfg.Self, Status: members.Alive}
}

// Members are all servers that gossip knows, of all regions.
func (s *Servers) Members() []members.Member {
	if g := s.gossip.Load(); g != nil {
		return g.List()
	}
	self := s.cfg.Self
	if s.log != nil {
		self.Writes = s.log.Version()
	}
	return []members.Member{{Self: self, Status: members.Alive}}
}

// votes says who votes, by id.
func (s *Servers) votes() map[string]bool {
	out := map[string]bool{}
	if s.log == nil {
		return out
	}
	peers, err := s.log.Peers()
	if err != nil {
		return out // the log is closing
	}
	for _, p := range peers {
		out[p.ID] = p.Voter
	}
	return out
}

// List is the servers of this region, as gossip knows them, this one too, ordered by name.
func (s *Servers) List() (out []Server) {
	g := s.gossip.Load()
	if g == nil {
		return []Server{s.Self()}
	}
	votes := s.votes()
	for _, m := range g.List() {
		if m.Region == s.cfg.Self.Region {
			out = append(out, Server{m.ID, m.Name, m.Region, m.RPCAddr, m.HTTPAddr, m.Status == members.Alive, votes[m.ID]})
		}
	}
	return out
}

// ForNodes are the servers of this region that nodes can speak with, also those that do not answer at the moment. There are
// none for a server that is alone. The list must not be changed.
func (s *Servers) ForNodes() []exchange.Server {
	g := s.gossip.Load()
	if g == nil {
		return nil
	}
	s.dialled.mu.Lock()
	defer s.dialled.mu.Unlock()
	select {
	case <-s.dialled.changed: // nil at first
	default:
		if s.dialled.changed != nil {
			return s.dialled.list
		}
	}
	s.dialled.changed, s.dialled.list = s.Changed(), nil // the channel first, so that no change falls between
	for _, m := range g.List() {
		if m.Region == s.cfg.Self.Region && m.Status != members.Left && m.RPCAddr != "" {
			s.dialled.list = append(s.dialled.list, exchange.Server{ID: m.ID, Address: m.RPCAddr})
		}
	}
	return s.dialled.list
}

// Addresses are where nodes dial the servers of this region, in the same order at each server; none for a server that is alone.
func (s *Servers) Addresses() (out []string) {
	for _, one := range s.ForNodes() {
		out = append(out, one.Address)
	}
	slices.Sort(out)
	return out
}

// ByID finds a server.
func (s *Servers) ByID(id string) (Server, bool) {
	for _, one := range s.List() {
		if one.ID == id {
			return one, true
		}
	}
	return Server{}, false
}

// Leader is the server that leads; false while none is known.
func (s *Servers) Leader() (Server, bool) {
	switch {
	case s.log == nil:
		return Server{}, false
	case s.log.IsLeader():
		return s.Self(), true
	case s.port == nil:
		return Server{}, false
	}
	id, address := s.log.Leader()
	if id == "" || id == s.cfg.Self.ID { // it does not lead any more
		return Server{}, false
	}
	if one, ok := s.ByID(id); ok {
		return one, true
	}
	return Server{ID: id, Name: id, Region: s.cfg.Self.Region, Address: address, Alive: true, Voter: true}, true // gossip does not know it yet
}

// Leads reports whether this server leads.
func (s *Servers) Leads() bool { return s.log != nil && s.log.IsLeader() }

// Changed returns a channel that is closed when the servers or the leader may have changed.
func (s *Servers) Changed() <-chan struct{} { return s.changed.C() }

// Log is this server's log.
func (s *Servers) Log() *raftlog.Log { return s.log }

// Version is the cluster's version: that of the commands, fields and snapshots that may be written. What needs a higher version
// may not be written yet.
func (s *Servers) Version() int { return s.log.Version() }

// proposal is a command on its way to the leader.
type proposal struct{ Command []byte }

// Propose appends the command, through the leader if that is another server, and returns once this server's state has it. It
// waits for a leader as long as Config.Hold. Errors: the command's own; those of raftlog.Propose; Unavailable, too, if the
// leader did not answer: the command may or may not be applied.
func (s *Servers) Propose(ctx context.Context, c command.Command) (index uint64, result any, err error) {
	if s.port == nil {
		return s.log.Propose(ctx, c)
	}
	var data []byte
	ends := s.deps.Clock.Now().Add(s.cfg.Hold)
	for {
		changed := s.Changed()
		leader, ok := s.Leader()
		switch {
		case ok && leader.ID == s.cfg.Self.ID:
			index, result, err = s.log.Propose(ctx, c)
		case ok:
			if data == nil {
				if data, err = command.Encode(c); err != nil {
					return 0, nil, err
				}
			}
			index, result, err = s.through(ctx, leader, data)
		default:
			err = drover.Errorf(drover.NotLeader, "No cluster leader")
		}
		left := ends.Sub(s.deps.Clock.Now())
		if drover.CodeOf(err) != drover.NotLeader || left <= 0 {
			return index, result, err
		}
		clock.Await(ctx, s.deps.Clock, min(left, askAgain), changed)
		if ctx.Err() != nil {
			return 0, nil, drover.Errorf(drover.Canceled, "proposing %s: %w", c.Kind(), context.Cause(ctx))
		}
	}
}

// askAgain is how long a proposal waits for news of another leader, after the one that it asked answered that it does not lead.
const askAgain = 100 * time.Millisecond

// Append is Propose with the result first.
func (s *Servers) Append(ctx context.Context, c command.Command) (result any, index uint64, err error) {
	index, result, err = s.Propose(ctx, c)
	return result, index, err
}

func (s *Servers) through(ctx context.Context, leader Server, data []byte) (uint64, any, error) {
	index, err := peercall.Call[uint64](ctx, s.client, leader.Address, procPropose, proposal{data})
	if err != nil {
		return 0, nil, err
	}
	wait, cancel := s.deps.Clock.WithTimeout(ctx, s.cfg.Hold)
	defer cancel()
	result, err := s.log.Answer(wait, index)
	return index, result, err
}

// answerPropose appends another server's command. The other server finds the command's own answer by the index.
func (s *Servers) answerPropose(ctx context.Context, _ string, in proposal) (uint64, error) {
	c, err := command.Decode(in.Command)
	if err != nil {
		return 0, err
	}
	index, _, err := s.log.Propose(ctx, c)
	if index > 0 {
		return index, nil // an error of the command itself is not one of the proposal
	}
	return 0, err
}

// ask asks another server for its status.
func (s *Servers) ask(ctx context.Context, m members.Member) (cluster.Status, error) {
	if m.RPCAddr == "" {
		return cluster.Status{}, errors.New("it did not say where its rpc port is")
	}
	return peercall.Call[cluster.Status](ctx, s.client, m.RPCAddr, procStatus, struct{}{})
}

func (s *Servers) answerStatus(context.Context, string, struct{}) (cluster.Status, error) {
	if s.cluster == nil {
		return cluster.Status{}, drover.Errorf(drover.Unavailable, "the server is starting")
	}
	return s.cluster.Status(), nil
}
