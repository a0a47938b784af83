package raftlog

import (
	"context"
	"time"

	"github.com/hashicorp/raft"
)

// Follow calls lead whenever this server leads: with a context that ends with the term of office, at the latest with
// ctx, and once all that the terms before proposed is applied. It returns when ctx ends, and never calls lead twice at
// once. Any number of followers may follow. While Hold holds them, no term begins.
func (l *Log) Follow(ctx context.Context, lead func(termCtx context.Context)) {
	changed := make(chan raft.Observation, 1) // a full one says enough
	observer := raft.NewObserver(changed, false, func(o *raft.Observation) bool {
		_, ok := o.Data.(raft.RaftState)
		return ok
	})
	l.raft.RegisterObserver(observer)
	defer l.raft.DeregisterObserver(observer)
	for ctx.Err() == nil {
		held := l.terms.changed.C()
		if term := l.raft.CurrentTerm(); l.IsLeader() && l.Barrier(ctx) == nil && l.terms.begin() {
			l.term(ctx, term, changed, lead)
			l.terms.end()
			continue
		}
		timer := l.clock.NewTimer(retryBarrier)
		select {
		case <-changed:
		case <-held:
		case <-timer.C(): // it leads, but a disk is full
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// retryBarrier is how long a leader that can't write waits until it tries again.
const retryBarrier = time.Second

// term calls lead until it returns, or the term is over.
func (l *Log) term(ctx context.Context, term uint64, changed <-chan raft.Observation, lead func(context.Context)) {
	termCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan struct{})
	go func() { // ends with termCtx
		defer close(ended)
		lead(termCtx)
	}()
	for {
		held := l.terms.changed.C()
		if l.terms.held() || !l.IsLeader() || l.raft.CurrentTerm() != term {
			break
		}
		select {
		case <-changed:
		case <-held:
		case <-ended:
			return
		case <-ctx.Done():
			<-ended
			return
		}
	}
	cancel()
	<-ended
}
