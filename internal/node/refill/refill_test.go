package refill

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type bundle struct {
	*Pacer
	started map[string]bool
	ids     []string
}

func newBundle(cores int) *bundle {
	return &bundle{Pacer: New(clock.Wall{}, cores), started: map[string]bool{}}
}

func warmAlloc(id string, size int) *drover.Allocation {
	j := &drover.Job{ID: "pool", TaskGroups: []*drover.TaskGroup{{Name: "g", Pool: &drover.WarmPool{Size: size}}}}
	return &drover.Allocation{ID: id, JobID: j.ID, Job: j, TaskGroup: "g"}
}

// ask has n runners of a pool ask for their turns.
func (b *bundle) ask(ctx context.Context, n, size int) {
	for range n {
		id := fmt.Sprint(len(b.ids))
		b.ids = append(b.ids, id)
		go func() { // ends with its turn, or ctx
			b.Await(ctx, warmAlloc(id, size))
			b.mu.Lock()
			defer b.mu.Unlock()
			b.started[id] = true
		}()
	}
	synctest.Wait()
}

// claimed has control say that a runner was claimed.
func (b *bundle) claimed(id string) { b.told(id, 0, true) }

// told has control say who may hand a runner out, and whether that was done.
func (b *bundle) told(id string, lease uint64, claimed bool) {
	a := &drover.Allocation{ID: id, Lease: lease}
	if claimed {
		a.Claim = &drover.Claim{}
	}
	b.Learn(a)
}

func (b *bundle) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.started)
}

// finish makes all that were started run.
func (b *bundle) finish() {
	for _, id := range b.ids {
		b.mu.Lock()
		on := b.started[id]
		b.mu.Unlock()
		if on {
			b.Observe(id, drover.AllocClientRunning)
		}
	}
	synctest.Wait()
}

func TestRefillsGoAtOnceWhenItIsCalm(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBundle(2)
		b.ask(t.Context(), 10, 10)
		require.Equal(t, 10, b.count())
	})
}

// claimedFour is a bundle whose pool of ten lost four and asks for them while it is busy.
func claimedFour(t *testing.T, cores int) *bundle {
	t.Helper()
	b := newBundle(cores)
	b.ask(t.Context(), 10, 10)
	b.finish()
	for i := range 4 {
		b.claimed(fmt.Sprint(i))
	}
	b.MarkUsed()
	b.ask(t.Context(), 4, 10)
	return b
}

func TestRefillsLeaveHalfOfABusyNodesCores(t *testing.T) {
	t.Parallel()
	for cores, starts := range map[int]int{1: 0, 2: 0, 3: 1, 4: 1, 5: 2, 16: 4} {
		synctest.Test(t, func(t *testing.T) {
			require.Equal(t, 10+starts, claimedFour(t, cores).count(), "%d cores", cores)
			time.Sleep(refillCalm)
		})
	}
}

func TestRefillsOfABusyNodeGoOneByOneUntilItIsCalm(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := claimedFour(t, 4)
		require.Equal(t, 11, b.count())
		b.finish()
		require.Equal(t, 12, b.count(), "the next when one runs")
		time.Sleep(refillCalm)
		synctest.Wait()
		require.Equal(t, 14, b.count())
		b.Observe("13", drover.AllocClientFailed)
		b.finish()
		require.Equal(t, 9, b.of["12"].warm)
		require.Zero(t, b.starting)
	})
}

func TestRefillsOfANodeThatIsAlwaysBusyGoOneByOneInTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := claimedFour(t, 2)
		for begin := time.Now(); time.Since(begin) < refillPatience; time.Sleep(refillCalm / 2) {
			require.Equal(t, 10, b.count())
			b.MarkUsed()
		}
		b.MarkUsed()
		synctest.Wait()
		require.Equal(t, 11, b.count())
		b.finish()
		require.Equal(t, 12, b.count(), "the next when one runs")
		time.Sleep(refillCalm)
	})
}

func TestRefillsOfAScarcePoolWaitForAMoment(t *testing.T) {
	t.Parallel()
	for size, wait := range map[int]time.Duration{8: 8 * refillHaste, 200: refillHasteMax} {
		synctest.Test(t, func(t *testing.T) {
			b := newBundle(2)
			b.ask(t.Context(), size, size)
			b.finish()
			for i := range size - 1 {
				b.claimed(fmt.Sprint(i)) // which is use
			}
			b.ask(t.Context(), size-1, size)
			for begin := time.Now(); time.Since(begin) < wait; time.Sleep(wait / 8) {
				require.Equal(t, size, b.count())
				b.MarkUsed()
			}
			synctest.Wait()
			require.Equal(t, 2*size-1, b.count())
		})
	}
}

// Three servers share a pool of thirty on a node that is always busy. All claims come to one of them. It has handed out all of its ten
// when the node still has twenty, of which it may hand out none: its next claims would wait for half a second.
func TestAPoolIsScarceWhenTheShareIsThatIsDrawnFrom(t *testing.T) {
	t.Parallel()
	for lease, started := range map[uint64]int{1: 39, 0: 30} { // 0: a server that is alone
		synctest.Test(t, func(t *testing.T) {
			const size = 30
			b := newBundle(2)
			b.ask(t.Context(), size, size)
			b.finish()
			for i := range size {
				b.told(b.ids[i], lease*uint64(1+i/10), false)
			}
			for i := range 9 {
				b.told(b.ids[i], lease, true)
			}
			b.ask(t.Context(), 9, size)
			for begin := time.Now(); time.Since(begin) <= 2*size*refillHaste; time.Sleep(refillCalm / 4) {
				b.MarkUsed()
			}
			synctest.Wait()
			require.Equal(t, started, b.count())
			time.Sleep(refillPatience)
			synctest.Wait()
		})
	}
}

// What was just started, and is not known to be leased, may be that server's. A share that nobody draws from is not missed, nor is that
// of a server that ended.
func TestWhichShareIsScarce(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	long, just := now.Add(-2*refillDrawn), now
	for name, c := range map[string]struct {
		shares map[uint64]*share
		scarce bool
	}{
		"alone":             {map[uint64]*share{0: {warm: 12}}, false},
		"drawn":             {map[uint64]*share{4: {1, just}, 5: {10, long}, 6: {10, long}}, true},
		"drawn, enough":     {map[uint64]*share{4: {3, just}, 5: {10, long}, 6: {10, long}}, false},
		"drawn, fresh ones": {map[uint64]*share{0: {warm: 2}, 4: {1, just}, 5: {10, long}, 6: {10, long}}, false},
		"not drawn":         {map[uint64]*share{4: {1, long}, 5: {10, long}, 6: {10, long}}, false},
		"ended":             {map[uint64]*share{4: {0, long}, 5: {10, long}, 6: {10, just}}, false},
		"all are drawn":     {map[uint64]*share{4: {9, just}, 5: {2, just}, 6: {10, just}}, true},
	} {
		w := &localPool{warm: 21, shares: c.shares}
		require.Equal(t, c.scarce, w.scarce(30, now), name)
		if name == "ended" {
			require.NotContains(t, w.shares, uint64(4))
		}
	}
	require.True(t, (&localPool{warm: 7}).scarce(30, now))
}

func TestAClaimThatIsKnownIsNoUse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBundle(2)
		b.ask(t.Context(), 2, 2)
		b.finish()
		b.claimed("0")
		require.True(t, b.Busy())
		time.Sleep(refillCalm)
		b.claimed("0")
		require.False(t, b.Busy())
	})
}

func TestRefillsLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBundle(2)
		ctx, cancel := context.WithCancel(t.Context())
		b.ask(ctx, 4, 4)
		b.finish()
		b.MarkUsed()
		b.ask(ctx, 3, 4)
		cancel() // the agent ends
		synctest.Wait()
		for _, id := range b.ids {
			b.Observe(id, drover.AllocClientComplete)
			b.claimed(id)
		}
		require.Empty(t, b.pools)
		require.Empty(t, b.of)
		require.Zero(t, b.starting)
		b.Await(t.Context(), &drover.Allocation{ID: "of no pool"})
	})
}
