package raftlog

import (
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/hashicorp/raft"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/fsm"
	"github.com/drover-project/drover/internal/control/snapshot"
)

// answer is what the FSM said of an entry.
type answer struct {
	index uint64 // of the state, which may be ahead of the log's
	value any
	err   error
	lost  bool // the state lacks the entry: err is not the command's
}

// machine is the FSM as raft wants it. An entry that this program cannot read stops it. The state stays what it was before the
// entry, and no snapshot of it is written: so the log keeps the entry for a program that can read it.
type machine struct {
	fsm    *fsm.FSM
	health *health
	log    *slog.Logger
	recent *recent // nil where nobody asks for answers by index
}

// Apply implements raft.FSM.
func (m *machine) Apply(l *raft.Log) any {
	return m.recent.keep(func() answer { return m.apply(l) })
}

func (m *machine) apply(l *raft.Log) answer {
	if lost := m.health.lacking(); lost != nil {
		return answer{err: lost, lost: true}
	}
	value, err := m.fsm.Apply(l.Index, l.Data)
	if errors.Is(err, fsm.ErrUndecodable) {
		lost := drover.Errorf(drover.Unavailable, "the state has stopped before entry %d of the log, which this program cannot read; "+
			"the log keeps it for a newer program: %w", l.Index, err)
		m.health.lose(lost)
		m.log.Error("applying the log", "index", l.Index, "error", lost)
		return answer{err: lost, lost: true}
	}
	return answer{index: m.fsm.Store().Index(), value: value, err: err}
}

// ApplyBatch implements raft.BatchingFSM.
func (m *machine) ApplyBatch(logs []*raft.Log) []any {
	out := make([]any, len(logs))
	for i, l := range logs {
		if l.Type == raft.LogCommand {
			out[i] = m.Apply(l)
		}
	}
	return out
}

// Snapshot implements raft.FSM. It refuses while the state lacks an entry, which would be dropped from the log behind it, and while
// the parts of another state come.
func (m *machine) Snapshot() (raft.FSMSnapshot, error) {
	if lost := m.health.lacking(); lost != nil {
		return nil, drover.Errorf(drover.Unavailable, "no snapshot is written: %w", lost)
	}
	if m.fsm.Restoring() {
		return nil, drover.Errorf(drover.Conflict, "no snapshot is written: the state is being replaced")
	}
	return image{m.fsm.Image()}, nil
}

// Restore implements raft.FSM. A snapshot that cannot be read changes nothing; raft tries an older one, or asks for it again.
func (m *machine) Restore(r io.ReadCloser) error {
	err := errors.Join(m.fsm.Restore(r), r.Close())
	if err != nil {
		m.health.lose(drover.Errorf(drover.Unavailable, "the state lacks what a snapshot has: %w", err))
		return err
	}
	m.health.whole()
	return nil
}

type image struct{ *snapshot.Image }

// Persist implements raft.FSMSnapshot.
func (i image) Persist(sink raft.SnapshotSink) error {
	if err := i.Write(sink); err != nil {
		return errors.Join(fmt.Errorf("writing snapshot %s: %w", sink.ID(), err), sink.Cancel())
	}
	return sink.Close()
}

// Release implements raft.FSMSnapshot.
func (image) Release() {}
