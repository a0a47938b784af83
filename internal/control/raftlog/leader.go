package raftlog

import (
	"context"
	"strconv"

	"github.com/hashicorp/raft"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/command"
)

// IsLeader reports whether this server may be proposed to.
func (l *Log) IsLeader() bool { return l.raft.State() == raft.Leader }

// Ready returns once this server, which leads, has applied all that was acknowledged before it did. Errors: NotLeader; Unavailable,
// also while the state lacks an entry.
func (l *Log) Ready(ctx context.Context) error {
	term := l.raft.CurrentTerm()
	if l.readyIn.Load() == term && l.IsLeader() {
		return l.health.lacking()
	}
	if err := l.Barrier(ctx); err != nil {
		return err
	}
	if err := l.health.lacking(); err != nil {
		return err
	}
	l.readyIn.Store(term) // if that was an older term, it is asked again
	return nil
}

// Leader returns the leader's id and address; empty while there is none.
func (l *Log) Leader() (id, address string) {
	a, i := l.raft.LeaderWithID()
	return string(i), string(a)
}

// WaitLeader blocks until this server is the leader and has applied all it knows to be committed. Where no other server can read
// the log, the state then has the version of this program.
func (l *Log) WaitLeader(ctx context.Context) error {
	seen := make(chan raft.Observation, 1)
	observer := raft.NewObserver(seen, false, func(o *raft.Observation) bool {
		_, ok := o.Data.(raft.RaftState)
		return ok
	})
	l.raft.RegisterObserver(observer)
	defer l.raft.DeregisterObserver(observer)
	for l.raft.State() != raft.Leader {
		select {
		case <-seen:
		case <-ctx.Done():
			return drover.Errorf(drover.Unavailable, "waiting to be the leader: %w", context.Cause(ctx))
		}
	}
	if err := l.Barrier(ctx); err != nil || !l.cfg.alone() || l.Version() >= command.Newest {
		return err
	}
	if _, _, err := l.Propose(ctx, &command.RaiseVersion{Version: command.Newest}); err != nil { // its disk is full: reads go on
		l.log.Warn("raising the version of what is written; it is tried again at the next start", "error", err)
	}
	return nil
}

// Peers returns the servers of the cluster as this one knows them.
func (l *Log) Peers() ([]Peer, error) {
	f := l.raft.GetConfiguration()
	if err := f.Error(); err != nil {
		return nil, drover.Errorf(drover.Unavailable, "reading the raft configuration: %w", err)
	}
	_, leader := l.raft.LeaderWithID()
	var out []Peer
	for _, s := range f.Configuration().Servers {
		out = append(out, Peer{
			ID: string(s.ID), Address: string(s.Address), Voter: s.Suffrage == raft.Voter, Leader: s.ID == leader,
		})
	}
	return out, nil
}

// Address returns where the others reach this server.
func (l *Log) Address() string { return string(l.address) }

// Stats is where the log stands.
type Stats struct {
	State         string // Leader, Follower, Candidate, Shutdown
	Term          uint64
	LastIndex     uint64
	CommitIndex   uint64
	AppliedIndex  uint64
	SnapshotIndex uint64
	Raft          map[string]string // all that raft says of itself
	Sick          string            // why writes are refused; "" = they are not
}

// Stats returns where the log stands.
func (l *Log) Stats() Stats {
	m := l.raft.Stats()
	number := func(key string) uint64 {
		n, _ := strconv.ParseUint(m[key], 10, 64) // raft prints them; a missing one is 0
		return n
	}
	s := Stats{
		State: m["state"], Term: number("term"), LastIndex: l.raft.LastIndex(), CommitIndex: l.raft.CommitIndex(),
		AppliedIndex: l.raft.AppliedIndex(), SnapshotIndex: number("last_snapshot_index"), Raft: m,
	}
	if err := l.health.writable(); err != nil {
		s.Sick = err.Error()
	}
	return s
}
