package lessee

import (
	"context"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/exec/runner"
)

// While servers of an older program are in the cluster nothing is leased, as they know nothing of leases. Then, as with them,
// only the leader hands out runners. A claim is answered when the log has it. What is warm when another server begins to lead
// is stopped, as the former leader may have handed it out. Once the cluster writes leases that service ends, and each server
// begins an incarnation.

// shares reports whether the cluster writes leases.
func (l *Lessee) shares() bool { return l.deps.Shares == nil || l.deps.Shares() }

// riseFor is how long a new leader waits for the version to rise. Where all servers are of today's program it rises at once.
const riseFor = time.Second

// unshared runs the service while this server leads, until the cluster writes leases.
func (l *Lessee) unshared(ctx context.Context) {
	if l.deps.Shares() {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var raised sync.WaitGroup
	raised.Go(func() { // ends with ctx, which it ends when the version has risen
		defer cancel()
		for ctx.Err() == nil {
			changed := l.deps.Raised()
			if l.deps.Shares() {
				return
			}
			select {
			case <-changed:
			case <-ctx.Done():
			}
		}
	})
	l.deps.Lead(ctx, func(term context.Context) {
		if clock.Sleep(term, l.deps.Clock, riseFor) {
			l.deps.Log.Info("this server hands out all runners until the cluster's version is raised: docs/upgrading.md")
			l.hold(term, l.beginUnshared)
		}
	})
	raised.Wait()
}

// beginUnshared records what stands in the journal, and stops what is warm.
func (l *Lessee) beginUnshared(ctx context.Context) (lease, former uint64, err error) {
	if err := runner.Settle(ctx, l.cfg.Journal, l.deps.Record); err != nil {
		return 0, 0, err
	}
	if ids := l.deps.Unclaimed(); len(ids) > 0 {
		err = l.deps.Record(0).ReleaseRunners(ctx, runner.Releases{
			AllocIDs: ids, Reason: "it may have been handed out by the server that led before",
		})
	}
	return 0, 0, err
}
