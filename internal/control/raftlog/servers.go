package raftlog

import (
	"context"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/drover-project/drover"
)

// AddVoter lets a server, which was opened with Join, share the log and vote. A server that is known already gets the address.
// Only on the leader. Errors: NotLeader; Unavailable.
func (l *Log) AddVoter(ctx context.Context, id, address string) error {
	return l.change(ctx, "adding voter "+id, func() raft.Future {
		return l.raft.AddVoter(raft.ServerID(id), raft.ServerAddress(address), 0, enqueueTimeout)
	})
}

// AddNonvoter lets a server share the log without a vote. A voter that is known already keeps its vote and gets the address.
// Only on the leader. Errors: as of AddVoter.
func (l *Log) AddNonvoter(ctx context.Context, id, address string) error {
	return l.change(ctx, "adding server "+id, func() raft.Future {
		return l.raft.AddNonvoter(raft.ServerID(id), raft.ServerAddress(address), 0, enqueueTimeout)
	})
}

// DemoteVoter takes a server's vote away. Only on the leader. Errors: as of AddVoter.
func (l *Log) DemoteVoter(ctx context.Context, id string) error {
	return l.change(ctx, "demoting server "+id, func() raft.Future { return l.raft.DemoteVoter(raft.ServerID(id), 0, enqueueTimeout) })
}

// RemoveServer takes a server out of the cluster; the leader may remove itself and then no longer leads. Only on the leader.
// Errors: as of AddVoter.
func (l *Log) RemoveServer(ctx context.Context, id string) error {
	return l.change(ctx, "removing server "+id, func() raft.Future { return l.raft.RemoveServer(raft.ServerID(id), 0, enqueueTimeout) })
}

// Transfer makes another server the leader: the given one, or with "" whichever follows best. Only on the leader.
// Errors: as of AddVoter; NotFound for a server that does not vote.
func (l *Log) Transfer(ctx context.Context, id string) error {
	if id == "" {
		return l.change(ctx, "handing leadership over", l.raft.LeadershipTransfer)
	}
	peers, err := l.Peers()
	if err != nil {
		return err
	}
	for _, p := range peers {
		if p.ID == id && p.Voter {
			return l.change(ctx, "handing leadership to server "+id, func() raft.Future {
				return l.raft.LeadershipTransferToServer(raft.ServerID(id), raft.ServerAddress(p.Address))
			})
		}
	}
	return drover.Errorf(drover.NotFound, "no voting server has the id %q", id)
}

func (l *Log) change(ctx context.Context, what string, ask func() raft.Future) error {
	err := l.wait(ctx, func() error { return ask().Error() })
	if err == nil {
		return nil
	}
	if l.raft.State() != raft.Leader {
		return l.notLeader()
	}
	return drover.Errorf(drover.Unavailable, "%s: %w", what, err)
}

// ReadIndex returns an index of the state at which a read sees everything that was acknowledged before the call. To be sure
// that a quorum takes this server for the leader, it commits an entry without a command. A server whose state has that index
// reads linearizably. Only on the leader. Errors: as of Propose; Unavailable while the state lacks an entry.
//
// raft's VerifyLeader would spare the entry, but counts the answer to a heartbeat that was sent before it was asked: then two
// servers that were closed before a read verified it (TestAMinorityVerifiesNothing). Entries of many readers share a disk write.
func (l *Log) ReadIndex(ctx context.Context) (uint64, error) {
	if err := l.Barrier(ctx); err != nil {
		return 0, err
	}
	if err := l.health.lacking(); err != nil {
		return 0, err
	}
	return l.machine.fsm.Store().Index(), nil
}

// LastContact is how long ago this server heard of the leader: 0 if it leads, negative if it never heard of one.
func (l *Log) LastContact() time.Duration {
	if l.raft.State() == raft.Leader {
		return 0
	}
	at := l.raft.LastContact()
	if at.IsZero() {
		return -1
	}
	return max(0, l.clock.Now().Sub(at))
}

// Progress is where a server's log is.
type Progress struct {
	LastContact time.Duration // since it heard of the leader; 0 if it leads, negative if it never did
	LastTerm    uint64
	LastIndex   uint64
	Sick        string // why it takes no writes, as in Stats; "" = it does
}

// Progress returns where this server's log is.
func (l *Log) Progress() Progress {
	s := l.Stats()
	return Progress{LastContact: l.LastContact(), LastTerm: s.Term, LastIndex: s.LastIndex, Sick: s.Sick}
}

// ID is this server's id in the log.
func (l *Log) ID() string { return l.cfg.ID }

// Raft is the library's log, for package autopilot.
func (l *Log) Raft() *raft.Raft { return l.raft }

// Logger is the log's logger as HashiCorp's libraries take one.
func (l *Log) Logger() hclog.Logger { return newLogger(l.log, l.clock) }
