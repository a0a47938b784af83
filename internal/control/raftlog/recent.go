package raftlog

import (
	"context"
	"sync"

	"github.com/hashicorp/raft"

	"github.com/drover-project/drover"
)

// recent keeps what the newest entries answered: who proposes through the leader is told the entry's index, and finds here
// what its own state machine said of it.
type recent struct {
	mu   sync.Mutex
	list [4096]answer // guarded by mu; each is at its index, modulo
}

// keep applies an entry and keeps what it answered, unless the state lacks it. Who saw in the state that the entry is applied
// finds its answer: it waits here until the answer is kept, too.
func (r *recent) keep(apply func() answer) answer {
	if r == nil {
		return apply()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	a := apply()
	if !a.lost {
		r.list[a.index%uint64(len(r.list))] = a
	}
	return a
}

func (r *recent) get(index uint64) (answer, bool) {
	if r == nil {
		return answer{}, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.list[index%uint64(len(r.list))]
	return a, a.index == index
}

// Answer waits until the entry that another server proposed is applied here, and returns what it answered. Errors: the
// command's own; Unavailable if the answer is not known any more, or came with a snapshot; Canceled if ctx ends first.
func (l *Log) Answer(ctx context.Context, index uint64) (any, error) {
	store := l.machine.fsm.Store()
	for {
		changed := store.WatchAny()
		if store.Index() >= index {
			break
		}
		if lost := l.machine.health.lacking(); lost != nil {
			return nil, drover.Errorf(drover.Unavailable, "entry %d is committed: %w", index, lost)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, drover.Errorf(drover.Canceled, "waiting for entry %d, which is committed: %w", index, context.Cause(ctx))
		case <-l.ended:
			return nil, drover.Errorf(drover.Unavailable, "waiting for entry %d, which is committed: the log is closed", index)
		}
	}
	a, ok := l.machine.recent.get(index)
	if !ok {
		return nil, drover.Errorf(drover.Unavailable, "entry %d is committed, and its answer is not known any more", index)
	}
	return a.value, a.err
}

// Observe calls changed whenever this server's role, the leader or the servers of the log may have changed, until stop is
// called. It must not block.
func (l *Log) Observe(changed func()) (stop func()) {
	observer := raft.NewObserver(nil, false, func(o *raft.Observation) bool {
		switch o.Data.(type) {
		case raft.RaftState, raft.LeaderObservation, raft.PeerObservation:
			changed()
		}
		return false
	})
	l.raft.RegisterObserver(observer)
	return func() { l.raft.DeregisterObserver(observer) }
}
