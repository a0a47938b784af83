package assignment

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/control/trigger"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/stack"
)

// pushes gathers the updates of all nodes in few entries. Those that come while an entry is on its way go together in the next
// one. So do those that come right behind an entry, if there are many or many are to come. So what the log takes does not grow
// with the number of nodes. A lone update waits for nothing, and one that claims may wait for not for long.
type pushes struct {
	mu     sync.Mutex    // guards the rest
	next   *batch        // still open
	newest chan struct{} // done of the newest batch; nil = there was none
	last   time.Time     // when the last entry went
	level  float64       // updates in about the last tenth of a second
	at     time.Time     // when level was that
}

// batch gathers the reports that go into one entry of the log. Each sender waits for done and then reads err.
type batch struct {
	nodes  []command.NodeUpdates
	urgent chan struct{} // closed when it must go at once
	rushed bool          // urgent is closed
	size   int           // updates

	starting int           // allocations of one of its jobs
	done     chan struct{} // closed when err is set
	err      error
}

// How far apart entries are kept.
const (
	calm       = 15                   // updates in a tenth of a second that are not many
	few        = 8                    // allocations of a job on their way that are not many
	spacing    = 5 * time.Millisecond // for each beyond them
	spacingMax = 200 * time.Millisecond
	fullBatch  = 250                   // updates that are worth an entry at once
	rushed     = 30 * time.Millisecond // between entries of updates that claims may wait for, when there are many
)

// count notes n updates.
func (p *pushes) count(n int, now time.Time) {
	p.level = p.level*math.Exp(-10*now.Sub(p.at).Seconds()) + float64(n)
	p.at = now
}

// wait returns how long the next entry is to be held back while a job has so many allocations on their way.
func (p *pushes) wait(now time.Time, starting int) time.Duration {
	p.count(0, now)
	many := max(p.level-calm, float64(starting-few), 0)
	return p.last.Add(min(time.Duration(many*float64(spacing)), spacingMax)).Sub(now)
}

// rush returns how long an entry that must go at once is to be held back.
func (p *pushes) rush(now time.Time) time.Duration {
	p.count(0, now)
	if p.level <= calm {
		return 0
	}
	return p.last.Add(rushed).Sub(now)
}

// Push implements exchange.Controller. Errors: NotFound (register first) if the node is unknown or was given up, NotLeader,
// Unavailable.
func (c *Controller) Push(ctx context.Context, nodeID string, updates []exchange.AllocUpdate) error {
	if err := attended(c.deps.Store.Snapshot(), nodeID); err != nil {
		return err
	}
	if len(updates) == 0 {
		return nil
	}
	starting, awaited := c.about(updates)
	b := c.join(ctx, command.NodeUpdates{NodeID: nodeID, Updates: updates}, starting, awaited)
	if !clock.Await(ctx, c.deps.Clock, clock.Forever, b.done) {
		return drover.Errorf(drover.Canceled, "waiting for updates of node %s to be stored: %w", nodeID, ctx.Err())
	}
	return b.err
}

// about returns how many allocations of one of the jobs are on their way. It also says whether claims may wait for
// one of the updates: a warm runner started or ended, and few are left.
func (c *Controller) about(updates []exchange.AllocUpdate) (starting int, awaited bool) {
	s := c.deps.Store.Snapshot()
	var seen *drover.Job
	enough := map[*drover.Job]bool{} // pools
	for i := range updates {
		a := s.Allocation(updates[i].ID)
		if a == nil || a.Job == nil {
			continue
		}
		if g := a.Job.Group(a.TaskGroup); g != nil && g.Pool != nil && a.ClientStatus != updates[i].ClientStatus && !enough[a.Job] {
			if low(s, a, g.Pool) {
				return starting, true
			}
			enough[a.Job] = true
		}
		if a.Job == seen {
			continue
		}
		seen = a.Job
		if sum := s.JobSummary(a.Namespace, a.JobID); sum != nil {
			for _, g := range sum.Summary {
				starting = max(starting, g.Starting)
			}
		}
	}
	return starting, false
}

// lowShare is the part of its size below which claims may soon find a pool empty.
const lowShare = 4

// low reports whether claims wait for runners of the allocation's pool, or soon may. Of several servers each can only hand out what is
// leased to it. A pool of which nothing is claimed is being filled: somebody waits for that. It looks at no more of the pool's runners than
// it takes to know, as it does so for each report.
func low(s *store.Snapshot, of *drover.Allocation, pool *drover.WarmPool) bool {
	if pool.Demand > 0 {
		return true
	}
	warm, claimed, held := 0, 0, map[uint64]int{}
	for l := range s.Lessees() {
		held[l.Incarnation] = 0
	}
	enough := func() bool {
		least := warm
		for _, n := range held {
			least = min(least, n*len(held))
		}
		return claimed > 0 && least*lowShare >= pool.Size
	}
	for a := range s.ActiveAllocationsByJob(of.Namespace, of.JobID) {
		switch {
		case a.Terminal():
			continue
		case a.Claim != nil:
			claimed++
		case a.ClientStatus == drover.AllocClientRunning:
			warm++
			if _, lives := held[a.Lease]; lives {
				held[a.Lease]++
			}
		}
		if enough() {
			return false
		}
	}
	return true
}

// join adds the updates to the open batch; who opens one has it flushed.
func (c *Controller) join(ctx context.Context, u command.NodeUpdates, starting int, awaited bool) *batch {
	p := &c.pushes
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count(len(u.Updates), c.deps.Clock.Now())
	b := p.next
	if b == nil {
		b = &batch{done: make(chan struct{}), urgent: make(chan struct{})}
		before := p.newest
		p.next, p.newest = b, b.done
		clock.Go(c.deps.Clock, func() { // ends when the log answers; others wait for it, whatever becomes of ctx
			stack.Grow8K()
			c.flush(ctx, b, before)
		})
	}
	b.nodes = append(b.nodes, u)
	b.size += len(u.Updates)
	b.starting = max(b.starting, starting)
	if (awaited || b.size >= fullBatch) && !b.rushed {
		b.rushed = true
		close(b.urgent)
	}
	return b
}

// hold waits until the batch may go, or nobody waits for what is to come.
func (c *Controller) hold(ctx context.Context, b *batch) {
	p := &c.pushes
	p.mu.Lock()
	wait := p.wait(c.deps.Clock.Now(), b.starting)
	p.mu.Unlock()
	if wait <= 0 {
		return
	}
	if !clock.Await(ctx, c.deps.Clock, wait, b.urgent) {
		return
	}
	p.mu.Lock()
	least, rushed := p.rush(c.deps.Clock.Now()), b.rushed
	p.mu.Unlock()
	if rushed && least > 0 && least < wait {
		clock.Sleep(ctx, c.deps.Clock, least)
	}
}

// flush waits until the batch before was committed, if there was one, closes the batch and commits it.
func (c *Controller) flush(ctx context.Context, b *batch, before <-chan struct{}) {
	p := &c.pushes
	all := context.WithoutCancel(ctx) // of who opened the batch: others wait for it too
	if before != nil {
		clock.Await(all, c.deps.Clock, clock.Forever, before)
	}
	c.hold(ctx, b)
	p.mu.Lock()
	p.next, p.last = nil, c.deps.Clock.Now()
	p.mu.Unlock()
	_, _, b.err = c.deps.Log.Propose(all, Entry(c.deps.Store.Snapshot(), c.maker(), b.nodes))
	close(b.done)
}

// orderedSince is the cluster version from which on reports say their order: what the state machine makes of that must be the same
// at all servers.
const orderedSince = 2

// servicesSince is the cluster version from which on they say which services fail their checks.
const servicesSince = 3

// Entry makes the command for what nodes report, with an evaluation for each job that the scheduler has to look at. It
// is pure.
func Entry(s *store.Snapshot, m trigger.Maker, nodes []command.NodeUpdates) *command.UpdateAllocs {
	cmd := &command.UpdateAllocs{Time: m.Now}
	version := cluster.VersionOf(s.Cluster())
	seen, rolls := map[drover.NamespacedID]bool{}, rollouts{}
	for _, n := range nodes {
		n.Updates = slices.Clone(n.Updates) // the caller's may be changed once it does not wait any more
		cmd.Nodes = append(cmd.Nodes, n)
		for i := range n.Updates {
			if version < orderedSince {
				n.Updates[i].Order = 0
			}
			if version < servicesSince {
				n.Updates[i].FailingServices = nil
			}
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
			if by == "" && becameWarm(a, &n.Updates[i], j) && rolls.out(s, j) {
				by = drover.TriggerRollingUpdate
			}
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
