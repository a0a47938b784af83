package assignment

import (
	"context"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/tables"
)

// Pull implements exchange.Controller. The index is the newest AllocModifyIndex of the node's allocations, so that what
// a node reports itself does not come back to it. Errors: NotFound (register first) if the node is unknown or was given up,
// Canceled.
func (c *Controller) Pull(ctx context.Context, nodeID string, since uint64, maxWait time.Duration) (exchange.Assignment, error) {
	deadline := c.deps.Clock.Now().Add(maxWait)
	for {
		if err := c.follows(); err != nil {
			return exchange.Assignment{}, err
		}
		changed := c.deps.Store.Watch(tables.NodeAllocs, nodeID)
		s := c.deps.Store.Snapshot()
		if err := attended(s, nodeID); err != nil {
			return exchange.Assignment{}, err
		}
		a := Wanted(s, nodeID)
		// A node that knows more than this state comes from another one, and has to hear what holds here.
		if since == 0 || a.Index > since || since > s.Index() {
			return a, nil
		}
		left := deadline.Sub(c.deps.Clock.Now())
		if left <= 0 {
			a.Index = max(a.Index, since)
			return a, nil
		}
		if !clock.Await(ctx, c.deps.Clock, left, changed) {
			return exchange.Assignment{}, drover.Errorf(drover.Canceled, "waiting for assignments of node %s: %w", nodeID, ctx.Err())
		}
	}
}

// attended returns an error unless the node is one that control counts on. A node that was given up has to register before
// it is heard: what it reports of allocations that are unknown meanwhile would make them unknown again, and again, until
// its next sign of life.
func attended(s *store.Snapshot, nodeID string) error {
	switch n := s.Node(nodeID); {
	case n == nil:
		return drover.Errorf(drover.NotFound, "node not found")
	case n.Status == drover.NodeStatusDown || n.Status == drover.NodeStatusDisconnected:
		return drover.Errorf(drover.NotFound, "node %s is %s: it has to register first", nodeID, n.Status)
	}
	return nil
}

// Wanted lists what is wanted of the node: all that it has not reported as ended. It is pure.
func Wanted(s *store.Snapshot, nodeID string) exchange.Assignment {
	a := exchange.Assignment{Index: max(s.NodeChanged(nodeID), 1)} // 0 would be answered at once the next time
	if n := s.Node(nodeID); n != nil {
		a.Meta = n.DynamicMeta
	}
	for x := range s.UnfinishedByNode(nodeID) {
		a.Allocs = append(a.Allocs, x)
	}
	return a
}
