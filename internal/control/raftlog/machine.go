package raftlog

import (
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/hashicorp/raft"

	"github.com/drover-project/drover/internal/control/fsm"
)

// answer is what the FSM said of an entry.
type answer struct {
	value any
	err   error
}

// machine is the FSM as raft wants it.
type machine struct {
	fsm    *fsm.FSM
	health *health
	log    *slog.Logger
	recent *recent // nil where nobody asks for answers by index
}

// Apply implements raft.FSM.
func (m *machine) Apply(l *raft.Log) any {
	value, err := m.fsm.Apply(l.Index, l.Data)
	m.recent.put(l.Index, answer{value, err})
	if errors.Is(err, fsm.ErrUndecodable) {
		m.health.fail(fmt.Errorf("the state no longer follows the log: %w", err))
		m.log.Error("applying the log", "index", l.Index, "err", err)
	}
	return answer{value, err}
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

// Snapshot implements raft.FSM.
func (m *machine) Snapshot() (raft.FSMSnapshot, error) { return image{m.fsm.Image()}, nil }

// Restore implements raft.FSM.
func (m *machine) Restore(r io.ReadCloser) error { return errors.Join(m.fsm.Restore(r), r.Close()) }

type image struct{ *fsm.Image }

// Persist implements raft.FSMSnapshot.
func (i image) Persist(sink raft.SnapshotSink) error {
	if err := i.Write(sink); err != nil {
		return errors.Join(fmt.Errorf("writing snapshot %s: %w", sink.ID(), err), sink.Cancel())
	}
	return sink.Close()
}

// Release implements raft.FSMSnapshot.
func (image) Release() {}
