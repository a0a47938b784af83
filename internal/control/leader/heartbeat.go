package leader

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/control/trigger"
	"github.com/drover-project/drover/internal/minheap"
	"github.com/drover-project/drover/internal/wake"
)

// heartbeats knows by when each node has to be heard of.
type heartbeats struct {
	cfg     Config
	clock   clock.Clock
	earlier wake.Signal // the earliest deadline may be another

	mu     sync.Mutex // guards the rest
	nodes  map[string]*nodeDeadline
	queue  *minheap.Heap[*nodeDeadline] // by deadline
	missed time.Duration                // in which this server did not get to watch: it does not count
	grace  time.Time                    // before this no node is given the grace once more
}

// nodeDeadline is by when a node must be heard of, in watched time. index is its place in the queue, which moves it when it is.
type nodeDeadline struct {
	id    string
	at    time.Time
	index int
}

// newHeartbeats returns one that waits for no node. restore fills it when a term begins.
func newHeartbeats(cfg Config, c clock.Clock) *heartbeats {
	return &heartbeats{cfg: cfg, clock: c, earlier: wake.NewSignal(), nodes: map[string]*nodeDeadline{}, queue: minheap.New(
		func(a, b *nodeDeadline) bool { return a.at.Before(b.at) }, func(n *nodeDeadline, i int) { n.index = i },
	)}
}

// restore gives every node that is not down a whole TTL, and no less than the failover's: this leader has not heard of any.
func (h *heartbeats) restore(s *store.Snapshot) {
	h.mu.Lock()
	h.nodes = map[string]*nodeDeadline{}
	h.queue.Clear()
	h.mu.Unlock()
	for n := range s.Nodes("") {
		if n.Status != drover.NodeStatusDown {
			h.expect(n.ID, h.cfg.FailoverTTL)
		}
	}
}

// beat notes a sign of life and returns within what time the next is wanted. With many nodes that is longer.
func (h *heartbeats) beat(nodeID string) time.Duration { return h.expect(nodeID, 0) }

// expect waits for a sign of life from now on, for at least that time and the grace. It returns within what time one is wanted.
func (h *heartbeats) expect(nodeID string, least time.Duration) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := h.nodes[nodeID]
	known := n != nil
	if !known {
		n = &nodeDeadline{id: nodeID}
		h.nodes[nodeID] = n
	}
	ttl := max(h.cfg.HeartbeatTTL, time.Duration(float64(len(h.nodes))/h.cfg.HeartbeatRate*float64(time.Second)))
	n.at = h.watched().Add(max(ttl, least) + h.cfg.HeartbeatGrace)
	if known {
		h.queue.Fix(n.index)
	} else {
		h.queue.Push(n)
	}
	if n.index == 0 {
		h.earlier.Send()
	}
	return ttl
}

// await looks at a node again after that time, unless it is heard of.
func (h *heartbeats) await(nodeID string, after time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.nodes[nodeID] != nil {
		return // it was heard of meanwhile
	}
	n := &nodeDeadline{id: nodeID, at: h.watched().Add(after)}
	h.nodes[nodeID] = n
	h.queue.Push(n)
	if n.index == 0 {
		h.earlier.Send()
	}
}

// count is how many nodes have to be heard of.
func (h *heartbeats) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.nodes)
}

// watched is the time as far as this server watched: it stands still while this server is late itself. Callers hold the mutex.
func (h *heartbeats) watched() time.Time { return h.clock.Now().Add(-h.missed) }

// look is how long nobody looks how late this server is.
func (h *heartbeats) look() time.Duration { return h.cfg.HeartbeatGrace / lateShare }

// lateShare: being late by this part of the grace is late, and by a tenth of that is noticed.
const lateShare = 8

// forgive takes the time by which the watch was late out of what counts, because the machine is too busy or the process was
// stopped. Whoever did not get to watch cannot say that others were silent. It reports whether that is worth a word: then all nodes
// have the grace once more, too, as their heartbeats may wait beside us. They have that once in the time in which a silent node is
// found, so that one is found however late this server is again and again.
func (h *heartbeats) forgive(late time.Duration) bool {
	if late < h.look()/10 {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.missed += late
	if late < h.look() || h.watched().Before(h.grace) {
		return false
	}
	least := h.watched().Add(h.cfg.HeartbeatGrace)
	h.grace = least.Add(h.cfg.HeartbeatTTL)
	for _, n := range h.nodes {
		if n.at.Before(least) {
			n.at = least
		}
	}
	h.queue.FixAll()
	return true
}

// overdue takes out and returns the nodes that were not heard of in time, and how long until the next may be.
func (h *heartbeats) overdue() (ids []string, wait time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.watched()
	for h.queue.Len() > 0 && !h.queue.Top().at.After(now) {
		n := h.queue.Pop()
		delete(h.nodes, n.id)
		ids = append(ids, n.id)
	}
	if h.queue.Len() == 0 {
		return ids, time.Hour
	}
	return ids, h.queue.Top().at.Sub(now)
}

// Heartbeat notes a node's sign of life and returns within what time the next is wanted.
func (l *Leader) Heartbeat(nodeID string) time.Duration { return l.heartbeats.beat(nodeID) }

// watchHeartbeats marks nodes down that are not heard of. It looks often how late it is itself: how long it waited beyond what it
// meant to, for the log, and for its turn. For the last it goes to the end of the queue, as the runtime lets first who was woken
// by a timer. With 2,000 goroutines that compute a timer was 1 ms late, and an answer by the network 25 s.
func (l *Leader) watchHeartbeats(ctx context.Context, log Log) {
	for from := l.deps.Clock.Now(); ; {
		ids, wait := l.heartbeats.overdue()
		if len(ids) > 0 {
			l.markDown(ctx, log, ids)
		}
		late := l.deps.Clock.Now().Sub(from)
		if l.heartbeats.count() > 0 {
			wait = min(wait, l.heartbeats.look())
		}
		due := l.deps.Clock.Now().Add(wait)
		if !clock.Await(ctx, l.deps.Clock, wait, l.heartbeats.earlier.C()) {
			return
		}
		woken := l.deps.Clock.Now()
		runtime.Gosched()
		from = l.deps.Clock.Now()
		if late += max(0, woken.Sub(due)) + from.Sub(woken); l.heartbeats.forgive(late) {
			l.deps.Logger.Warn("this server is too busy to hear of nodes: they have that much longer", "late", late)
		}
	}
}

// markDown stores the nodes as down, with evaluations of what ran on them.
func (l *Leader) markDown(ctx context.Context, log Log, ids []string) {
	s, now := l.deps.Store.Snapshot(), l.deps.Clock.Now()
	c := down(s, ids, l.maker())
	for _, id := range ids {
		if away := Away(s, id, now); away > 0 {
			l.heartbeats.await(id, away) // it may be down then
		}
	}
	if len(c.Nodes) == 0 {
		return
	}
	l.deps.Logger.Warn("nodes missed their heartbeat", "nodes", ids)
	defer l.took("nomad.nomad.heartbeat.invalidate", now)
	if _, _, err := log.Propose(ctx, c); err != nil && ctx.Err() == nil {
		l.deps.Logger.Error("cannot mark nodes down", "nodes", ids, "error", err)
		for _, id := range ids {
			l.heartbeats.beat(id) // try again when they are overdue next
		}
	}
}

// Away is how long the node is to be disconnected instead of down: some of its allocations are not lost before.
func Away(s *store.Snapshot, nodeID string, now time.Time) (longest time.Duration) {
	for a := range s.UnfinishedByNode(nodeID) {
		if a.ServerTerminal() || a.Job == nil {
			continue
		}
		after := a.Job.Group(a.TaskGroup).LostAfter()
		if a.UnknownSince != 0 {
			after = min(after, time.Unix(0, a.UnknownSince).Add(after).Sub(now))
		}
		longest = max(longest, after)
	}
	return longest
}

// down is the command that marks those of the nodes down, or disconnected, that are not.
func down(s *store.Snapshot, ids []string, m trigger.Maker) *command.UpdateNodeStatuses {
	c := &command.UpdateNodeStatuses{Time: m.Now}
	for _, id := range ids {
		n := s.Node(id)
		if n == nil || n.Status == drover.NodeStatusDown {
			continue
		}
		status := drover.NodeStatusDown
		if Away(s, id, time.Unix(0, m.Now)) > 0 {
			status = drover.NodeStatusDisconnected
		}
		if n.Status == status {
			continue
		}
		c.Nodes = append(c.Nodes, command.NodeStatus{
			NodeID: id, Status: status, Description: "heartbeat missed",
			Event: &drover.NodeEvent{Message: "Node heartbeat missed", Subsystem: "Cluster", Timestamp: time.Unix(0, m.Now).UTC()},
		})
		c.Evals = append(c.Evals, m.Node(s, id, drover.TriggerNodeUpdate)...)
	}
	return c
}
