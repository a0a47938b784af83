package pool_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/fleet/pool"
	"github.com/drover-project/drover/internal/fleet/provider/sim"
)

// slowLog holds updates up while it is slow, and remembers the last behaviour of each machine that it was told.
type slowLog struct {
	*world
	slow chan struct{} // nil = it is not
	last map[string]fleet.IdleBehavior
}

func (l *slowLog) Update(ctx context.Context, u pool.Update) error {
	l.mu.Lock()
	slow := l.slow
	l.mu.Unlock()
	if slow != nil {
		<-slow
	}
	l.mu.Lock()
	for _, i := range u.Changed {
		l.last[i.ID] = i.Behavior
	}
	l.mu.Unlock()
	return l.world.Update(ctx, u)
}

// TestAnOperatorsWordIsNotOverwritten: while an update of the log is under way an operator wants a machine drained. Once
// that is answered the log knows it, and no older update comes after it. Before, the answer's own write could be
// overtaken by the update, and a server that was killed then forgot what it had acknowledged.
func TestAnOperatorsWordIsNotOverwritten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(sim.Config{})
		log := &slowLog{world: w, last: map[string]fleet.IdleBehavior{}}
		w.log = log
		p, stop := w.run(t)
		defer stop()
		w.change(func() { w.demand = work(1) })
		time.Sleep(40 * time.Second)
		list := instances(t, p)
		require.Len(t, list, 1)

		slow := make(chan struct{})
		w.change(func() { log.slow = slow })
		require.NoError(t, p.Do(t.Context(), func(now time.Time, c *pool.Core) error {
			return c.Behave(now, list[0].ID, fleet.BehaviorHold, "a test")
		}))
		synctest.Wait() // the loop's update is under way, and has the machine held
		require.NoError(t, p.Do(t.Context(), func(now time.Time, c *pool.Core) error {
			return c.Behave(now, list[0].ID, fleet.BehaviorDrain, "a test")
		}))
		answered := make(chan error, 1)
		go func() { answered <- p.Recorded(t.Context()) }() // ends with its answer
		synctest.Wait()
		require.Empty(t, answered, "the log does not know it yet")
		w.change(func() { log.slow = nil })
		close(slow)
		require.NoError(t, <-answered)
		w.change(func() { require.Equal(t, fleet.BehaviorDrain, log.last[list[0].ID]) })
	})
}
