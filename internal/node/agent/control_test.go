package agent

import (
	"context"
	"sync"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/exchange"
)

// control is a fake exchange.Controller: one node, what a test assigns, what the node reported.
type control struct {
	mu       sync.Mutex // guards what follows
	index    uint64
	node     *drover.Node
	nodes    []*drover.Node // as it registered, one after the other
	register int
	beats    int
	allocs   map[string]*drover.Allocation
	pushes   [][]exchange.AllocUpdate
	meta     map[string]*string
	away     error // returned by everything
	slow     chan struct{}
	changed  chan struct{}
	heard    chan struct{} // closed by the next Push
	now      func() time.Time
	pushedAt []time.Time
}

func newControl() *control {
	return &control{index: 1, allocs: map[string]*drover.Allocation{}, changed: make(chan struct{}), heard: make(chan struct{}), now: time.Now}
}

func (c *control) bump() {
	c.index++
	close(c.changed)
	c.changed = make(chan struct{})
}

func (c *control) Register(_ context.Context, n *drover.Node) (exchange.Registration, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.away != nil {
		return exchange.Registration{}, c.away
	}
	c.node, c.nodes = n, append(c.nodes, n)
	c.register++
	return exchange.Registration{TTL: 10 * time.Second}, nil
}

func (c *control) Heartbeat(context.Context, string) (exchange.Registration, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.away != nil {
		return exchange.Registration{}, c.away
	}
	if c.node == nil {
		return exchange.Registration{}, drover.Errorf(drover.NotFound, "register first")
	}
	c.beats++
	return exchange.Registration{TTL: 10 * time.Second}, nil
}

func (c *control) Pull(ctx context.Context, _ string, seen exchange.Seen, maxWait time.Duration) (exchange.Assignment, error) {
	since := seen.Index
	timer := time.NewTimer(maxWait)
	defer timer.Stop()
	for {
		c.mu.Lock()
		if c.away != nil {
			defer c.mu.Unlock()
			return exchange.Assignment{}, c.away
		}
		if c.node == nil {
			defer c.mu.Unlock()
			return exchange.Assignment{}, drover.Errorf(drover.NotFound, "register first")
		}
		if since == 0 || c.index != since {
			out := exchange.Assignment{Index: c.index, Meta: c.meta}
			for _, a := range c.allocs {
				if !a.ClientTerminal() {
					out.Allocs = append(out.Allocs, a)
				}
			}
			c.mu.Unlock()
			return out, nil
		}
		changed := c.changed
		c.mu.Unlock()
		select {
		case <-changed:
		case <-timer.C:
			return exchange.Assignment{Index: since}, nil
		case <-ctx.Done():
			return exchange.Assignment{}, ctx.Err()
		}
	}
}

func (c *control) Push(ctx context.Context, _ string, updates []exchange.AllocUpdate) error {
	c.mu.Lock()
	slow := c.slow
	c.mu.Unlock()
	if slow != nil {
		select {
		case <-slow:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.away != nil {
		return c.away
	}
	c.pushes = append(c.pushes, updates)
	c.pushedAt = append(c.pushedAt, c.now())
	close(c.heard)
	c.heard = make(chan struct{})
	for _, u := range updates {
		if old := c.allocs[u.ID]; old != nil {
			a := *old
			a.ClientStatus, a.ClientDescription, a.TaskStates = u.ClientStatus, u.ClientDescription, u.TaskStates
			c.allocs[u.ID] = &a
			if a.ClientTerminal() {
				c.bump()
			}
		}
	}
	return nil
}

// assign makes control want the allocations.
func (c *control) assign(allocs ...*drover.Allocation) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range allocs {
		c.allocs[a.ID] = a
	}
	c.bump()
}

// drop makes control forget an allocation.
func (c *control) drop(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.allocs, id)
	c.bump()
}

func (c *control) goAway(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.away = err
	c.bump()
}

func (c *control) alloc(id string) *drover.Allocation {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.allocs[id]
}

// statuses lists the client statuses reported of an allocation.
func (c *control) statuses(id string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for _, push := range c.pushes {
		for _, u := range push {
			if u.ID == id {
				out = append(out, u.ClientStatus)
			}
		}
	}
	return out
}

func (c *control) pushed() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.pushes)
}

func (c *control) pushTime(i int) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pushedAt[i]
}

func (c *control) counts() (registered, beats int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.register, c.beats
}

// rewind puts control back to an older state, without the allocations.
func (c *control) rewind() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.allocs)
	c.index = 1
	close(c.changed)
	c.changed = make(chan struct{})
}
