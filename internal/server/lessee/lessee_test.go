package lessee_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/control/leases"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A server that is cut off hands out nothing any more before the leader takes its leases away. What it handed out and recorded goes
// on at the leader, an execution too; who waited there is told to ask again, and its idle timers stop nothing.
func TestAServerThatIsCutOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRegion(t, "a", "b")
		a, b := r.run("a"), r.run("b")
		a.put(t)
		r.add("a")
		unused := r.add("b")
		r.add("b") // the freshest is handed out first
		synctest.Wait()
		require.True(t, b.Warm("python"))
		got, err := b.Claim(t.Context(), execution.ClaimRequest{Environment: "python", Wait: -1, IdleTimeout: 30 * time.Second})
		require.NoError(t, err)
		x, err := b.CreateRequest(t.Context(), got.ID, execution.Request{Spec: execution.Spec{
			Argv: []string{"/bin/sh", "-c", "sleep 1h"}, Detach: -1,
		}})
		require.NoError(t, err)
		require.True(t, b.Has(x.ID))
		require.False(t, a.Has(x.ID))
		_, err = a.Runner(t.Context(), got.ID)
		require.Equal(t, drover.NotLeader, drover.CodeOf(err), "the other keeps it")
		session, err := b.Attach(t.Context(), x.ID, execution.Offsets{})
		require.NoError(t, err)
		time.Sleep(time.Minute)
		b.cut.Store(true)
		time.Sleep(leases.Lasts)
		require.False(t, b.Warm("python"))
		require.Len(t, r.list(), 2, "and only then its leases end")
		_, err = b.Claim(t.Context(), atOnce)
		require.Equal(t, drover.NotLeader, drover.CodeOf(err))
		time.Sleep(leases.Ends - leases.Lasts + leases.Renew)
		require.Len(t, r.list(), 1)
		require.True(t, r.Snapshot().Allocation(unused.ID).Terminal(), "b may have handed it out")
		for {
			f, err := session.Next(t.Context())
			require.Nil(t, f.Receipt, "it runs on")
			if err != nil {
				require.Equal(t, drover.Unavailable, drover.CodeOf(err))
				break
			}
		}
		found, err := a.Info(t.Context(), x.ID)
		require.NoError(t, err)
		require.True(t, found.Running)
		_, err = a.Claim(t.Context(), atOnce)
		require.NoError(t, err)
		time.Sleep(50 * time.Minute)
		_, err = a.Runner(t.Context(), got.ID)
		require.NoError(t, err, "it is in use")
		r.Update(got.AllocID, func(a *drover.Allocation) { a.ClientStatus = drover.AllocClientFailed })

		// It comes back with what it wrote down. It tells no end of an execution that another server kept.
		b.cut.Store(false)
		time.Sleep(time.Minute)
		require.Len(t, r.list(), 2)
		_, err = b.Info(t.Context(), x.ID)
		require.Equal(t, drover.NotFound, drover.CodeOf(err))
		r.add("b")
		synctest.Wait()
		_, err = b.Claim(t.Context(), atOnce)
		require.NoError(t, err)
		b.end()
		a.end()
	})
}

// A claim waits for a leader as other requests do, also at a server that has just begun and has not been answered yet.
func TestAClaimWaitsForTheLeader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRegion(t, "a", "b")
		a, b := r.run("a"), r.run("b")
		a.put(t)
		b.end()
		r.mu.Lock()
		r.leader = nil // nobody answers
		r.mu.Unlock()
		r.changed.Send()
		b = r.run("b")
		r.mu.Lock()
		r.leader = nil
		r.mu.Unlock()
		time.Sleep(time.Minute)
		r.add("b")
		claimed := make(chan error, 1)
		go func() { // ends with the claim
			_, err := b.Claim(t.Context(), execution.ClaimRequest{Environment: "python", Wait: time.Minute})
			claimed <- err
		}()
		synctest.Wait()
		r.mu.Lock()
		r.leader = a
		r.mu.Unlock()
		r.changed.Send()
		require.NoError(t, <-claimed)
		_, err := b.RunOnce(t.Context(), execution.RunRequest{Environment: "nothing", Request: execution.Request{
			Spec: execution.Spec{Argv: []string{"/bin/true"}},
		}})
		require.Equal(t, drover.NotFound, drover.CodeOf(err), "it may hand out, and knows no such environment")
		b.end()
		a.end()
	})
}

// A server that stops gives the others what it holds. One that is killed and comes back keeps its claimed runners.
func TestAServerThatStops(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRegion(t, "a", "b")
		a, b := r.run("a"), r.run("b")
		a.put(t)
		warm := r.add("b")
		r.add("b")
		synctest.Wait()
		waits := make(chan error, 1)
		claimed, err := b.Claim(t.Context(), atOnce)
		require.NoError(t, err)
		if claimed.AllocID == warm.ID {
			warm = r.Snapshot().Allocation(r.allocs[1])
		}
		go func() { // ends with the service
			_, err := b.Claim(t.Context(), execution.ClaimRequest{Environment: "nothing", Wait: time.Hour})
			waits <- err
		}()
		require.Equal(t, drover.NotFound, drover.CodeOf(<-waits))
		b.end()
		synctest.Wait()
		require.Len(t, r.list(), 1)
		got, err := a.Claim(t.Context(), atOnce)
		require.NoError(t, err)
		require.Equal(t, warm.ID, got.AllocID)
		_, err = a.Runner(t.Context(), claimed.ID)
		require.NoError(t, err)
		a.end() // the last one: nobody is there to have anything
		require.Len(t, r.list(), 1)
	})
}

// Before a runner is stopped its lessee is asked, and what it handed out is spared. One that does not answer stops the plan.
func TestRunnersAreWithheldWhereverTheyAreLeased(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRegion(t, "a", "b")
		a, b := r.run("a"), r.run("b")
		a.put(t)
		ids := []string{r.add("a").ID, r.add("b").ID}
		synctest.Wait()
		_, giveBack, err := a.Withhold(t.Context(), ids)
		require.NoError(t, err)
		for _, s := range []*server{a, b} {
			_, err = s.Claim(t.Context(), atOnce)
			require.Equal(t, drover.Exhausted, drover.CodeOf(err))
		}
		giveBack(true)
		synctest.Wait()
		require.True(t, a.Warm("python"))
		require.True(t, b.Warm("python"))

		_, giveBack, err = a.Withhold(t.Context(), ids)
		require.NoError(t, err)
		require.False(t, b.Warm("python"))
		time.Sleep(2 * time.Minute)
		require.False(t, b.Warm("python"), "the leader wants it still")
		b.cut.Store(true)
		giveBack(true) // which b does not hear
		synctest.Wait()
		require.True(t, a.Warm("python"))
		b.cut.Store(false)
		time.Sleep(time.Minute + 10*time.Second)
		require.True(t, b.Warm("python"))

		b.cut.Store(true)
		_, _, err = a.Withhold(t.Context(), ids[1:])
		require.Equal(t, drover.Unavailable, drover.CodeOf(err))
		b.cut.Store(false)
		r.Fail(drover.Errorf(drover.Unavailable, "no leader"))
		_, err = b.Claim(t.Context(), atOnce)
		require.NoError(t, err)
		_, _, err = a.Withhold(t.Context(), ids[1:])
		require.Equal(t, drover.Unavailable, drover.CodeOf(err), "it is handed out, and nobody knows it yet")
		r.Fail(nil)
		time.Sleep(10 * time.Second)
		_, giveBack, err = a.Withhold(t.Context(), ids[1:])
		require.NoError(t, err)
		require.NotNil(t, r.Snapshot().Allocation(ids[1]).Claim)
		giveBack(true)
		b.end()
		a.end()
	})
}

// The leader knows that a plan stopped a runner before other servers do, and nobody knows of a plan that was not answered. Who was to
// withhold the runner handed it out again in that moment, or after a minute, however long the plan took.
func TestWithheldRunnersWaitForWhatBecomesOfThem(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRegion(t, "a", "b")
		a, b := r.run("a"), r.run("b")
		a.put(t)
		ids := []string{r.add("a").ID, r.add("b").ID}
		synctest.Wait()
		_, giveBack, err := a.Withhold(t.Context(), ids)
		require.NoError(t, err)
		r.lag.Store(true)
		giveBack(true)
		time.Sleep(10 * time.Second)
		require.True(t, a.Warm("python"), "it has the state")
		require.False(t, b.Warm("python"), "it may not have the state")
		r.lag.Store(false)
		time.Sleep(2 * time.Second)
		require.True(t, b.Warm("python"))

		_, giveBack, err = a.Withhold(t.Context(), ids)
		require.NoError(t, err)
		r.lag.Store(true)
		giveBack(false)
		time.Sleep(10 * time.Second)
		require.False(t, a.Warm("python"), "nobody knows whether the plan is committed")
		require.False(t, b.Warm("python"))
		r.lag.Store(false)
		time.Sleep(2 * time.Second)
		require.True(t, a.Warm("python"))
		require.True(t, b.Warm("python"))
		b.end()
		a.end()
	})
}

// A plan stops runners that are still starting. One that began to run, and was leased, before the plan was there was handed out.
func TestARunnerThatIsNotLeasedYetIsWithheldEverywhere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRegion(t, "a", "b")
		a, b := r.run("a"), r.run("b")
		a.put(t)
		id := r.add("nobody").ID
		synctest.Wait()
		_, giveBack, err := a.Withhold(t.Context(), []string{id})
		require.NoError(t, err)
		r.Update(id, func(x *drover.Allocation) { x.Lease = r.incarnation("b") })
		synctest.Wait()
		_, err = b.Claim(t.Context(), atOnce)
		require.Equal(t, drover.Exhausted, drover.CodeOf(err))
		giveBack(true)
		synctest.Wait()
		require.True(t, b.Warm("python"))
		b.end()
		a.end()
	})
}

// An incarnation that begins after the others were asked is none of those that withhold, and a runner that leaves one server for another is
// withheld there, too.
func TestWithholdSaysWhoWasAsked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRegion(t, "a", "b", "c")
		a, b := r.run("a"), r.run("b")
		a.put(t)
		mine, theirs, starting := r.add("a").ID, r.add("b").ID, r.add("nobody").ID
		r.Update(starting, func(x *drover.Allocation) { x.ClientStatus = drover.AllocClientPending })
		synctest.Wait()
		for want, ids := range map[*[]uint64][]string{
			{0, r.incarnation("a")}:                     {mine},
			{0, r.incarnation("b")}:                     {theirs},
			{0, r.incarnation("a"), r.incarnation("b")}: {starting},
		} {
			leases, giveBack, err := a.Withhold(t.Context(), ids)
			require.NoError(t, err)
			require.ElementsMatch(t, *want, leases)
			giveBack(true)
			synctest.Wait()
		}
		leases, giveBack, err := a.Withhold(t.Context(), []string{mine, theirs, starting})
		require.NoError(t, err)
		c := r.run("c")
		synctest.Wait()
		require.NotContains(t, leases, r.incarnation("c"))
		r.Update(mine, func(x *drover.Allocation) { x.Lease = r.incarnation("b") })
		synctest.Wait()
		_, err = b.Claim(t.Context(), atOnce)
		require.Equal(t, drover.Exhausted, drover.CodeOf(err))
		r.Update(starting, func(x *drover.Allocation) { x.ClientStatus, x.Lease = drover.AllocClientRunning, r.incarnation("c") })
		synctest.Wait()
		_, err = c.Claim(t.Context(), atOnce)
		require.NoError(t, err, "which is why the state machine looks at whose it is")
		giveBack(true)
		synctest.Wait()
		c.end()
		b.end()
		a.end()
	})
}

// A server that leads again before its service has begun may have claims in its journal that nobody knows yet.
func TestNothingIsStoppedBeforeTheLeadersServiceHasBegun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRegion(t, "a")
		a := r.run("a")
		a.put(t)
		id := r.add("a").ID
		synctest.Wait()
		a.end()
		require.Len(t, r.list(), 1, "its incarnation waits for it")
		_, _, err := a.Withhold(t.Context(), []string{id})
		require.Equal(t, drover.Unavailable, drover.CodeOf(err))
	})
}

// A server that stops while a plan is on its way gave the runners that it withheld to others, which withhold nothing.
func TestWhatIsWithheldIsNotGivenAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRegion(t, "a", "b")
		a, b := r.run("a"), r.run("b")
		a.put(t)
		id := r.add("b").ID
		synctest.Wait()
		_, giveBack, err := a.Withhold(t.Context(), []string{id})
		require.NoError(t, err)
		b.end()
		synctest.Wait()
		require.False(t, a.Warm("python"))
		giveBack(true)
		a.end()
	})
}

// A server that was cut off asks for leases that were taken away meanwhile, before it knows that. It is not told that they go on,
// or it would hand out what is stopped. (simulation of several servers, seed 63)
func TestEndedLeasesDoNotGoOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRegion(t, "a", "b")
		a, b := r.run("a"), r.run("b")
		lives := r.list()[0].Incarnation
		require.NoError(t, a.AnswerRenew(lives))
		require.Equal(t, drover.Gone, drover.CodeOf(a.AnswerRenew(lives+99)))
		require.Equal(t, drover.NotLeader, drover.CodeOf(b.AnswerRenew(lives)))
		b.end()
		a.end()
	})
}
