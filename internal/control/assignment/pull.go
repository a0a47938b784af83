package assignment

import (
	"context"
	"sync"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/tables"
)

const (
	// catchUp is how long a server whose state is older than what the node has seen waits until it is not.
	catchUp = 5 * time.Second
	// touchEvery is how often a server that has no news looks whether it would hear of some.
	touchEvery = 2 * time.Second
)

// Pull implements exchange.Controller. The index is the newest AllocModifyIndex of the node's allocations, so that what
// a node reports itself does not come back to it. Any server answers, but never from older state than the node has seen.
// Errors: NotFound (register first) if the node is unknown or was given up, Unavailable, Canceled.
func (c *Controller) Pull(ctx context.Context, nodeID string, seen exchange.Seen, maxWait time.Duration) (exchange.Assignment, error) {
	deadline := c.deps.Clock.Now().Add(maxWait)
	if err := c.caughtUp(ctx, seen); err != nil {
		return exchange.Assignment{}, err
	}
	for {
		changed := c.deps.Store.Watch(tables.NodeAllocs, nodeID)
		s := c.deps.Store.Snapshot()
		if err := attended(s, nodeID); err != nil {
			return exchange.Assignment{}, err
		}
		a := Wanted(s, nodeID)
		// A node that knows more than this state comes from another one, and has to hear what holds here.
		other := a.Age != seen.Age || seen.Index > a.State
		if seen.Index == 0 || a.Index > seen.Index || other {
			return a, nil
		}
		left := deadline.Sub(c.deps.Clock.Now())
		if left <= 0 {
			a.Index = max(a.Index, seen.Index)
			return a, nil
		}
		if err := c.news(ctx, nodeID, left, changed); err != nil {
			return exchange.Assignment{}, err
		}
	}
}

// news waits for a change, for that long at most. Errors: Unavailable as soon as this server would not hear of one; Canceled.
func (c *Controller) news(ctx context.Context, nodeID string, left time.Duration, changed <-chan struct{}) error {
	signals := []<-chan struct{}{changed}
	var cut <-chan struct{} // never, where there is no other server
	if c.deps.Several {
		if err := c.deps.Touch(); err != nil {
			return err
		}
		cut = c.looks.join(ctx, c)
		defer c.looks.leave()
		signals = append(signals, cut)
	}
	if !clock.Await(ctx, c.deps.Clock, left, signals...) {
		return drover.Errorf(drover.Canceled, "waiting for assignments of node %s: %w", nodeID, ctx.Err())
	}
	select {
	case <-cut:
		return c.deps.Touch()
	default:
		return nil
	}
}

// looks looks for all who wait for news whether this server would hear of some: thousands of nodes wait at once.
type looks struct {
	mu      sync.Mutex    // guards what follows
	waiting int           // who waits
	cut     chan struct{} // closed when this server is cut off; nil while nobody looks
	over    chan struct{} // closed when nobody waits any more
}

// join returns a channel that is closed when this server is cut off from the leader. Leave it.
func (l *looks) join(ctx context.Context, c *Controller) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting++
	if l.cut == nil {
		cut, over := make(chan struct{}), make(chan struct{})
		l.cut, l.over = cut, over
		clock.Go(c.deps.Clock, func() { l.run(ctx, c, cut, over) }) // ends when nobody waits, or when this server is cut off
	}
	return l.cut
}

func (l *looks) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting--; l.waiting == 0 && l.cut != nil {
		close(l.over)
		l.cut, l.over = nil, nil
	}
}

// run looks from time to time until nobody waits, or this server is cut off.
func (l *looks) run(ctx context.Context, c *Controller, cut, over chan struct{}) {
	all := context.WithoutCancel(ctx) // of who came first: others wait, too
	for {
		clock.Await(all, c.deps.Clock, touchEvery, over)
		select {
		case <-over:
			return
		default:
		}
		if c.deps.Touch() != nil {
			l.mu.Lock()
			if l.cut == cut {
				l.cut, l.over = nil, nil
			}
			l.mu.Unlock()
			close(cut)
			return
		}
	}
}

// caughtUp waits until the state is not older than what a node has seen. Errors: Unavailable if that takes too long; Canceled.
func (c *Controller) caughtUp(ctx context.Context, seen exchange.Seen) error {
	if !c.deps.Several {
		return nil
	}
	for ends := c.deps.Clock.Now().Add(catchUp); ; {
		changed := c.deps.Store.WatchAny()
		s := c.deps.Store.Snapshot()
		if !Older(s.Cluster().Age(), s.Index(), seen) {
			return c.deps.Touch()
		}
		left := ends.Sub(c.deps.Clock.Now())
		if left <= 0 {
			return drover.Errorf(drover.Unavailable, "this server's state is older than what the node has seen: %d, not %d", s.Index(), seen.State)
		}
		if !clock.Await(ctx, c.deps.Clock, left, changed) {
			return drover.Errorf(drover.Canceled, "waiting for newer state: %w", ctx.Err())
		}
	}
}

// Older reports whether a state is older than what a node has seen. It is pure.
func Older(age string, index uint64, seen exchange.Seen) bool {
	if age == seen.Age {
		return index < seen.State
	}
	return cluster.Before(age, seen.Age)
}

// attended returns an error unless the node is one that control counts on. A node that was given up has to register before it
// is heard. What it reports of allocations that are unknown meanwhile would make them unknown once more with each report, until
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
	a := exchange.Assignment{
		Index: max(s.NodeChanged(nodeID), 1), State: s.Index(), Age: s.Cluster().Age(), Signers: true, History: s.History(), // index 0: of none
	}
	// After a restore another list may be wanted of any node.
	if c := s.Cluster(); c != nil {
		a.Index = max(a.Index, c.ModifyIndex)
	}
	if n := s.Node(nodeID); n != nil {
		a.Meta = n.DynamicMeta
	}
	for v := range s.HostVolumesOn(nodeID) {
		a.Volumes = append(a.Volumes, v)
	}
	for x := range s.UnfinishedByNode(nodeID) {
		a.Allocs = append(a.Allocs, x)
		if ns := s.Namespace(x.Namespace); ns != nil && ns.Images != nil && len(ns.Images.SignedBy) > 0 {
			if a.SignedBy == nil {
				a.SignedBy = map[string][]string{}
			}
			a.SignedBy[x.Namespace] = ns.Images.SignedBy
		}
	}
	return a
}
