package pool_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/fleet/pool"
	"github.com/drover-project/drover/internal/fleet/provider"
	"github.com/drover-project/drover/internal/fleet/provider/sim"
	"github.com/drover-project/drover/internal/id"
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

// slow runs a pool that has bought one machine, and whose log can be held up.
func slow(t *testing.T) (w *world, log *slowLog, p *pool.Pool, machine string) {
	t.Helper()
	w = newWorld(sim.Config{})
	log = &slowLog{world: w, last: map[string]fleet.IdleBehavior{}}
	w.log = log
	p, stop := w.run(t)
	t.Cleanup(stop)
	w.change(func() { w.demand = work(1) })
	time.Sleep(40 * time.Second)
	list := instances(t, p)
	require.Len(t, list, 1)
	return w, log, p, list[0].ID
}

// TestAnOperatorsWordIsNotOverwritten: while an update of the log is under way an operator wants a machine drained. Once
// that is answered the log knows it, and no older update comes after it. Before, the answer's own write could be
// overtaken by the update, and a server that was killed then forgot what it had acknowledged.
func TestAnOperatorsWordIsNotOverwritten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, log, p, machine := slow(t)

		held := make(chan struct{})
		w.change(func() { log.slow = held })
		require.NoError(t, p.Do(t.Context(), func(now time.Time, c *pool.Core) error {
			return c.Behave(now, machine, fleet.BehaviorHold, "a test")
		}))
		synctest.Wait() // the loop's update is under way, and has the machine held
		require.NoError(t, p.Do(t.Context(), func(now time.Time, c *pool.Core) error {
			return c.Behave(now, machine, fleet.BehaviorDrain, "a test")
		}))
		answered := make(chan error, 1)
		go func() { answered <- p.Recorded(t.Context()) }() // ends with its answer
		synctest.Wait()
		require.Empty(t, answered, "the log does not know it yet")
		w.change(func() { log.slow = nil })
		close(held)
		require.NoError(t, <-answered)
		w.change(func() { require.Equal(t, fleet.BehaviorDrain, log.last[machine]) })
	})
}

// TestADestroyIsInTheLogFirst: the cloud is not asked before the log knows. Before, a server that was stopped in between
// destroyed a machine to which the next leader had given work.
func TestADestroyIsInTheLogFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, log, p, machine := slow(t)
		held := make(chan struct{})
		w.change(func() { log.slow = held })
		require.NoError(t, p.Do(t.Context(), func(now time.Time, c *pool.Core) error { return c.Kill(now, machine, "a test") }))
		time.Sleep(30 * time.Second)
		require.Equal(t, 1, w.running(), "the log does not know it yet")
		w.change(func() { log.slow = nil })
		close(held)
		time.Sleep(2 * time.Second)
		require.Zero(t, w.running())
	})
}

// TestWhatIsDestroyedStaysDestroyed: the next leader goes on with a destroy, whatever waits by then.
func TestWhatIsDestroyedStaysDestroyed(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_795_392_000, 0)
	c := pool.NewCore(now, pool.Config{Owner: "me", Provider: "sim", Policies: []*fleet.Policy{policy()}, IDs: id.NewSeeded(1)})
	c.Restore(now, []fleet.Durable{{ID: "a", Pool: "p", State: fleet.InstanceDestroying, Why: "drained", Reason: "idle", ProviderID: "i-1"}})
	c.Listed(now, []provider.Machine{{ID: "i-1", Intent: "a", State: provider.Running, Tags: map[string]string{
		fleet.TagOwner: "me", fleet.TagPool: "p", fleet.TagIntent: "a",
	}}}, true, nil)
	require.NoError(t, c.Registered(now, "a", "n"))
	c.Reported(now, "n", pool.Report{Ready: true})
	i, ok := c.Instance("a")
	require.True(t, ok)
	require.Equal(t, fleet.InstanceDestroying, i.State)
	require.Equal(t, "drained", i.Why)
	var kinds []pool.EffectKind
	for _, e := range c.Effects() {
		kinds = append(kinds, e.Kind)
	}
	require.Equal(t, []pool.EffectKind{pool.EffectDestroy, pool.EffectDrain}, kinds)
}

// TestAnIntentThatMayComeIntoTheLogEnds: a proposal whose answer is lost may be applied later; its row says that it is gone.
func TestAnIntentThatMayComeIntoTheLogEnds(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_795_392_000, 0)
	for code, rows := range map[drover.Code]int{drover.Unavailable: 1, drover.Canceled: 1, drover.NotLeader: 0, drover.Exhausted: 0} {
		c := pool.NewCore(now, pool.Config{Owner: "me", Provider: "sim", Policies: []*fleet.Policy{policy()}, IDs: id.NewSeeded(1)})
		c.Listed(now, nil, true, nil)
		c.SetDemand("p", work(1))
		c.Decide(now)
		var record *pool.Effect
		for _, e := range c.Effects() {
			if e.Kind == pool.EffectRecord {
				record = &e
			}
		}
		require.NotNil(t, record)
		c.Recorded(now, record, drover.Errorf(code, "a test"))
		u := c.TakeUpdate(now)
		require.Len(t, u.Changed, rows, code)
		for _, i := range u.Changed {
			require.Equal(t, fleet.InstanceGone, i.State)
		}
	}
}

// TestWhoMayNotLeadDoesNothing: a server that was stopped asks before it does what it decided before.
func TestWhoMayNotLeadDoesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(sim.Config{Lost: 1}) // it is asked for again and again
		leads := true
		w.leads = func() error {
			if leads {
				return nil
			}
			return drover.Errorf(drover.NotLeader, "another server leads")
		}
		_, stop := w.run(t)
		defer stop()
		calls := func(call provider.Call) (n int) {
			w.cloud.With(func(_ time.Time, c *sim.Cloud) { n = c.Calls[call] })
			return n
		}
		time.Sleep(20 * time.Second)
		w.change(func() { w.demand = work(1) })
		time.Sleep(time.Second)
		before := calls(provider.CallCreate)
		require.Positive(t, before)
		w.change(func() { leads = false })
		time.Sleep(5 * time.Minute)
		require.Equal(t, before, calls(provider.CallCreate))
		w.change(func() { leads = true })
	})
}
