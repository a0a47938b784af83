package leader

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/drover-project/drover"
)

// MaxSchedulers bounds how many schedulers compute at once.
const MaxSchedulers = 1024

// crew is how many schedulers compute at once, and which types of evaluations they take. Both can be changed while they work.
type crew struct {
	tokens chan struct{} // one for each scheduler that may begin to compute

	mu      sync.Mutex // guards what follows
	size    int
	owed    int // tokens that are taken away when they come back
	types   []string
	since   time.Time
	changed context.CancelFunc // ends what waits for an evaluation
	now     context.Context    // ends with the next change
}

func newCrew(size int, types []string, now time.Time) *crew {
	c := &crew{tokens: make(chan struct{}, MaxSchedulers)}
	c.set(size, types, now)
	return c
}

// set changes the number and the types. Who computes ends as it began.
func (c *crew) set(size int, types []string, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for ; c.size < size; c.size++ {
		if c.owed > 0 {
			c.owed--
			continue
		}
		c.tokens <- struct{}{} // there is room for all that there can be
	}
	for ; c.size > size; c.size-- {
		select {
		case <-c.tokens:
		default:
			c.owed++
		}
	}
	c.types, c.since = slices.Clone(types), now
	if c.changed != nil {
		c.changed()
	}
	c.now, c.changed = context.WithCancel(context.Background()) //nolint:forbidigo // it lasts until the next change
}

// work returns the types that are taken now, none if nobody works, and a context that ends when that changes, or with ctx.
func (c *crew) work(ctx context.Context) (types []string, until context.Context, stop func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	until, cancel := context.WithCancel(ctx)
	unwatch := context.AfterFunc(c.now, cancel)
	if c.size > 0 {
		types = c.types
	}
	return types, until, func() { unwatch(); cancel() }
}

// begin waits until one more may compute. Errors: the context's.
func (c *crew) begin(ctx context.Context) error {
	select {
	case <-c.tokens:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// end is called after each begin that returned nil.
func (c *crew) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.owed > 0 {
		c.owed--
		return
	}
	c.tokens <- struct{}{}
}

// Schedulers is how many schedulers compute at once, the types of evaluations that they take, and since when.
func (l *Leader) Schedulers() (count int, types []string, since time.Time) {
	l.crew.mu.Lock()
	defer l.crew.mu.Unlock()
	return l.crew.size, slices.Clone(l.crew.types), l.crew.since
}

// SetSchedulers changes how many schedulers compute at once, 0 is none, and which types of evaluations they take. It holds until
// the server stops. Errors: Invalid.
func (l *Leader) SetSchedulers(count int, types []string) error {
	if count < 0 || count > MaxSchedulers {
		return drover.Errorf(drover.Invalid, "the number of schedulers must be from 0 to %d, got %d", MaxSchedulers, count)
	}
	for _, t := range types {
		if !slices.Contains(schedulerTypes, t) {
			return drover.Errorf(drover.Invalid, "there is no scheduler %q", t)
		}
	}
	l.crew.set(count, types, l.deps.Clock.Now())
	return nil
}
