package servers

import (
	"context"

	"github.com/drover-project/drover/internal/peercall"
)

// procReadIndex asks the leader from which index on a state is new enough for a consistent read.
const procReadIndex = "Log.ReadIndex"

// Linearize waits until this server's state has all that was acknowledged anywhere before the call. Without a leader it waits for one.
// Errors: ctx's; those of raftlog.ReadIndex, by whichever server leads; Unavailable if that does not answer.
func (s *Servers) Linearize(ctx context.Context) error {
	if s.Leads() {
		_, err := s.log.ReadIndex(ctx)
		return err
	}
	leader, ok := s.Leader()
	for !ok {
		changed := s.Changed()
		if leader, ok = s.Leader(); ok {
			break
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if leader.ID == s.cfg.Self.ID {
		_, err := s.log.ReadIndex(ctx)
		return err
	}
	index, err := peercall.Call[uint64](ctx, s.client, leader.Address, procReadIndex, struct{}{})
	if err != nil {
		return err
	}
	return s.Reach(ctx, index)
}

func (s *Servers) answerReadIndex(ctx context.Context, _ string, _ struct{}) (uint64, error) {
	return s.log.ReadIndex(ctx)
}

// Reach waits until this server's state has the index. Errors: ctx's.
func (s *Servers) Reach(ctx context.Context, index uint64) error {
	for {
		changed := s.deps.Store.WatchAny()
		if s.deps.Store.Snapshot().Index() >= index {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
