package assignment

import (
	"context"
	"slices"
	"sync"

	"drover"
	"drover/internal/control/command"
	"drover/internal/control/store"
	"drover/internal/control/trigger"
)

// pushes gathers the updates of all nodes: those that come while an entry is on its way go together in the next one.
// A lone update waits for nothing.
type pushes struct {
	turn chan struct{} // capacity 1: held while an entry is on its way

	mu   sync.Mutex // guards next
	next *batch     // still open
}

type batch struct {
	nodes []command.NodeUpdates
	done  chan struct{} // closed when err is set
	err   error
}

// Push implements drover.Controller. Errors: NotFound (register first), NotLeader, Unavailable.
func (c *Controller) Push(ctx context.Context, nodeID string, updates []drover.AllocUpdate) error {
	if c.deps.Store.Snapshot().Node(nodeID) == nil {
		return drover.Errorf(drover.NotFound, "node not found")
	}
	if len(updates) == 0 {
		return nil
	}
	b := c.join(ctx, command.NodeUpdates{NodeID: nodeID, Updates: updates})
	select {
	case <-b.done:
		return b.err
	case <-ctx.Done():
		return drover.Errorf(drover.Canceled, "waiting for updates of node %s to be stored: %w", nodeID, ctx.Err())
	}
}

// join adds the updates to the open batch; who opens one has it flushed.
func (c *Controller) join(ctx context.Context, u command.NodeUpdates) *batch {
	p := &c.pushes
	p.mu.Lock()
	defer p.mu.Unlock()
	b := p.next
	if b == nil {
		b = &batch{done: make(chan struct{})}
		p.next = b
		go c.flush(context.WithoutCancel(ctx), b) // ends when the log answers; others wait for it, whatever becomes of ctx
	}
	b.nodes = append(b.nodes, u)
	return b
}

// flush waits for its turn, closes the batch and commits it.
func (c *Controller) flush(ctx context.Context, b *batch) {
	p := &c.pushes
	p.turn <- struct{}{}
	p.mu.Lock()
	p.next = nil
	p.mu.Unlock()
	_, _, b.err = c.deps.Log.Propose(ctx, Entry(c.deps.Store.Snapshot(), c.maker(), b.nodes))
	<-p.turn
	close(b.done)
}

// Entry makes the command for what nodes report, with an evaluation for each job that the scheduler has to look at. It
// is pure.
func Entry(s *store.Snapshot, m trigger.Maker, nodes []command.NodeUpdates) *command.UpdateAllocs {
	cmd := &command.UpdateAllocs{Time: m.Now}
	seen := map[drover.NamespacedID]bool{}
	for _, n := range nodes {
		n.Updates = slices.Clone(n.Updates) // the caller's may be changed once it does not wait any more
		cmd.Nodes = append(cmd.Nodes, n)
		for i := range n.Updates {
			a := s.Allocation(n.Updates[i].ID)
			if a == nil || a.NodeID != n.NodeID {
				continue
			}
			n.Updates[i] = ended(a, n.Updates[i], m.Now)
			key := drover.NamespacedID{Namespace: a.Namespace, ID: a.JobID}
			if seen[key] {
				continue
			}
			j := s.Job(a.Namespace, a.JobID)
			by := reaction(a, &n.Updates[i], j)
			if by == "" {
				continue
			}
			seen[key] = true
			if j == nil {
				j = a.Job
			}
			if j == nil {
				continue // nobody can say what it was
			}
			e := m.Job(j, by)
			e.Namespace, e.JobID = key.Namespace, key.ID
			cmd.Evals = append(cmd.Evals, e)
		}
	}
	return cmd
}
