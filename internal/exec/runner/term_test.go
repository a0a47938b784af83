package runner_test

import (
	"context"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/exec/exectest"
	"github.com/drover-project/drover/internal/exec/runner"
)

// leased is a service of an incarnation, whose environment keeps nothing warm by itself.
func leased(t *testing.T, lease uint64) (*exectest.Control, *runner.Service, func()) {
	t.Helper()
	c := exectest.NewControl()
	s, end := exectest.Start(t, c, runner.Config{Lease: lease})
	exectest.Put(t, s, "python", 0)
	c.StopRefill()
	return c, s, end
}

// Two servers had the execution service one after the other, and the first ran on. A claim that waited there got the runner
// that the second handed out too, and its idle timer stopped a runner that was in use at the second.
func TestAServiceThatEndedKeepsItsHandsOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, former, end := leased(t, 1)
		c.AddLeased("python", 1)
		synctest.Wait()
		used, err := former.Claim(t.Context(), execution.ClaimRequest{Environment: "python", IdleTimeout: 10 * time.Second})
		require.NoError(t, err)
		waits := make(chan error, 1)
		go func() { // ends with the service
			_, err := former.Claim(t.Context(), execution.ClaimRequest{Environment: "python", Wait: time.Hour})
			waits <- err
		}()
		synctest.Wait()
		end()
		require.Equal(t, drover.NotLeader, drover.CodeOf(<-waits))
		require.True(t, former.Recorded())
		c.Update(used.AllocID, func(a *drover.Allocation) { a.Lease = 2 }) // as the state machine does when an incarnation ends

		next, _ := exectest.Start(t, c, runner.Config{Lease: 2})
		c.AddLeased("python", 2)
		synctest.Wait()
		use, err := next.Use(t.Context(), used.ID)
		require.NoError(t, err)
		defer use.Done()
		_, err = next.Claim(t.Context(), claimReq("python"))
		require.NoError(t, err)
		_, err = former.Claim(t.Context(), claimReq("python"))
		require.Equal(t, drover.NotLeader, drover.CodeOf(err))
		time.Sleep(time.Minute)
		synctest.Wait()
		require.NoError(t, use.GoneReason(), "it is in use")
	})
}

// A claim with a key was answered before it was recorded: a leader that followed within that quarter of a second did not know it,
// and gave the same client another runner.
func TestAClaimThatIsToBeKnownIsRecordedFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := exectest.NewControl()
		s, end := exectest.Start(t, c, runner.Config{Lease: 2})
		exectest.Put(t, s, "python", 0)
		c.StopRefill()
		for range 20 { // so that recording is not urgent
			c.AddLeased("python", 2)
		}
		synctest.Wait()
		keyed := execution.ClaimRequest{Environment: "python", Once: execution.Once{Key: "x"}, Labels: map[string]string{"a": "b"}}
		got, err := s.Claim(t.Context(), keyed)
		require.NoError(t, err)
		require.NotNil(t, c.Snapshot().Allocation(got.AllocID).Claim)
		require.Equal(t, "x", execution.OnceKey(c.Snapshot().Allocation(got.AllocID).Claim.Labels))
		again, err := s.Claim(t.Context(), keyed)
		require.NoError(t, err)
		require.Equal(t, got.ID, again.ID)
		keyed.Once.Request = "other"
		_, err = s.Claim(t.Context(), keyed)
		require.Equal(t, drover.Conflict, drover.CodeOf(err))
		keyed.Once.Key = "y"

		c.Fail(drover.Errorf(drover.NotLeader, "No cluster leader"))
		from := time.Now()
		_, err = s.Claim(t.Context(), claimReq("python"))
		require.NoError(t, err)
		require.Zero(t, time.Since(from), "others do not wait")
		_, err = s.Claim(t.Context(), keyed)
		require.Equal(t, drover.Unavailable, drover.CodeOf(err))
		c.Fail(nil)
		time.Sleep(time.Minute)
		list, err := s.Runners(t.Context(), "default", "python")
		require.NoError(t, err)
		with := 0
		for _, r := range list {
			if r.Labels["a"] == "b" && r.State == execution.RunnerClaimed {
				with++
			}
		}
		require.Equal(t, 1, with, "who was not answered keeps no runner")
		end()
	})
}

// A run that failed is tried again with its key at once: the state does not know yet that its runner was released.
func TestAKeyIsUsedAgainAfterItsRunnerEnded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := exectest.NewControl()
		s, end := exectest.Start(t, c, runner.Config{Lease: 2})
		exectest.Put(t, s, "python", 0)
		c.StopRefill()
		for range 20 {
			c.AddLeased("python", 2)
		}
		synctest.Wait()
		keyed := execution.ClaimRequest{Environment: "python", Once: execution.Once{Key: "x"}}
		first, err := s.Claim(t.Context(), keyed)
		require.NoError(t, err)
		time.Sleep(time.Minute) // so that the release is not urgent
		require.NoError(t, s.Release(t.Context(), first.ID))
		require.False(t, c.Snapshot().Allocation(first.AllocID).Terminal())
		second, err := s.Claim(t.Context(), keyed)
		require.NoError(t, err)
		require.NotEqual(t, first.ID, second.ID)
		require.True(t, c.Snapshot().Allocation(first.AllocID).Terminal(), "or the state would refuse the second")
		end()
	})
}

// A server hands out what is leased to it, and knows of the rest.
func TestRunnersAreLeased(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s, _ := leased(t, 2)
		mine := c.AddLeased("python", 2)
		others := c.AddLeased("python", 3)
		synctest.Wait()
		st, err := s.PoolStatus(t.Context(), "python")
		require.NoError(t, err)
		require.Equal(t, 2, st.Warm)
		got, err := s.Claim(t.Context(), claimReq("python"))
		require.NoError(t, err)
		require.Equal(t, mine.ID, got.AllocID)
		_, err = s.Claim(t.Context(), claimReq("python"))
		require.Equal(t, drover.Exhausted, drover.CodeOf(err))
		c.Update(others.ID, func(a *drover.Allocation) { a.Claim = &drover.Claim{RunnerID: runner.RunnerID("python", others.ID)} })
		synctest.Wait()
		_, err = s.Runner(t.Context(), runner.RunnerID("python", others.ID))
		require.Equal(t, drover.NotLeader, drover.CodeOf(err), "another server knows it")
		adopted, err := s.Adopted(t.Context())
		require.NoError(t, err)
		require.Empty(t, adopted)
		require.False(t, s.Keeps(others.ID, 2))
		require.True(t, s.Keeps(got.AllocID, 0), "it kept the runner before, and nobody in between")
		require.False(t, s.Keeps(got.AllocID, 1))
		c.Update(others.ID, func(a *drover.Allocation) { a.Lease = 2 }) // its server ended
		synctest.Wait()
		_, err = s.Runner(t.Context(), runner.RunnerID("python", others.ID))
		require.NoError(t, err)
		<-s.More()
		adopted, err = s.Adopted(t.Context())
		require.NoError(t, err)
		require.Equal(t, []string{runner.RunnerID("python", others.ID)}, adopted)
	})
}

// A server that was cut off learns that its incarnation ended before it knows that it is to stop: the runners that it keeps have
// not ended by that. What was told of them as ended would count as their end.
func TestARunnerThatAnotherTookOverHasNotEnded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s, _ := leased(t, 2)
		c.AddLeased("python", 2)
		synctest.Wait()
		got, err := s.Claim(t.Context(), claimReq("python"))
		require.NoError(t, err)
		use, err := s.Use(t.Context(), got.ID)
		require.NoError(t, err)
		defer use.Done()
		c.Update(got.AllocID, func(a *drover.Allocation) { a.Lease = 3 })
		synctest.Wait()
		require.NoError(t, use.GoneReason())
	})
}

// A release was answered, and its server killed before it was recorded. Another server took the runner over meanwhile: the release
// counts when the first starts again, but that it was idle there does not.
func TestAReleaseThatWasAnsweredCounts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := exectest.NewControl()
		cfg := runner.Config{Lease: 2, JournalPath: filepath.Join(t.TempDir(), "journal")}
		s, stop := exectest.Start(t, c, cfg)
		exectest.Put(t, s, "python", 0)
		c.StopRefill()
		c.AddLeased("python", 2)
		c.AddLeased("python", 2)
		synctest.Wait()
		idle := claimReq("python")
		idle.IdleTimeout = time.Minute
		expired, err := s.Claim(t.Context(), idle)
		require.NoError(t, err)
		asked, err := s.Claim(t.Context(), claimReq("python"))
		require.NoError(t, err)
		time.Sleep(59 * time.Second)
		c.FailReleases(drover.Errorf(drover.Unavailable, "no leader"))
		require.NoError(t, s.Release(t.Context(), asked.ID))
		time.Sleep(2 * time.Second)
		_, err = s.Runner(t.Context(), expired.ID)
		require.Equal(t, drover.Gone, drover.CodeOf(err))
		stop()
		c.FailReleases(nil)
		var settled []runner.Releases
		require.NoError(t, runner.Settle(t.Context(), cfg.JournalPath, func(lease uint64) runner.Intake {
			require.Equal(t, uint64(2), lease)
			return releasing{c, &settled}
		}))
		reason := runner.ErrStopped.Error()
		require.ElementsMatch(t, []runner.Releases{
			{AllocIDs: []string{asked.AllocID}, Reason: reason, Asked: true}, {AllocIDs: []string{expired.AllocID}, Reason: reason},
		}, settled)
	})
}

// releasing notes what is released.
type releasing struct {
	runner.Intake
	all *[]runner.Releases
}

func (r releasing) ReleaseRunners(ctx context.Context, of runner.Releases) error {
	*r.all = append(*r.all, of)
	return r.Intake.ReleaseRunners(ctx, of)
}

// A process that stood still between a claim's line and its answer does not answer: its leases may have ended meanwhile.
func TestALeaseThatEndedMeanwhileIsNotUsed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := exectest.NewControl()
		deps, asked := c.Deps(), 0
		deps.Holds = func() bool { asked++; return asked == 1 }
		s, err := runner.New(runner.Config{Lease: 2}, deps)
		require.NoError(t, err)
		ctx, end := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- s.Run(ctx) }() // ends with ctx
		exectest.Put(t, s, "python", 0)
		c.StopRefill()
		a := c.AddLeased("python", 2)
		synctest.Wait()
		_, err = s.Claim(t.Context(), claimReq("python"))
		require.Equal(t, drover.NotLeader, drover.CodeOf(err))
		_, err = s.Claim(t.Context(), claimReq("python"))
		require.Equal(t, drover.NotLeader, drover.CodeOf(err))
		synctest.Wait()
		require.True(t, c.Snapshot().Allocation(a.ID).Terminal(), "it may not be handed out by anybody")
		end()
		require.NoError(t, <-done)
	})
}

// What a killed server had answered and not recorded is recorded when it starts again, under the lease that it had then.
func TestTheJournalIsSettled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := exectest.NewControl()
		cfg := runner.Config{Lease: 2, JournalPath: filepath.Join(t.TempDir(), "journal")}
		s, stop := exectest.Start(t, c, cfg)
		exectest.Put(t, s, "python", 0)
		c.StopRefill()
		c.AddLeased("python", 2)
		ended := c.AddLeased("python", 2)
		synctest.Wait()
		c.Fail(drover.Errorf(drover.Unavailable, "no leader"))
		first, err := s.Claim(t.Context(), claimReq("python"))
		require.NoError(t, err)
		second, err := s.Claim(t.Context(), claimReq("python"))
		require.NoError(t, err)
		require.NoError(t, s.Release(t.Context(), second.ID))
		stop()
		require.False(t, s.Recorded())
		under := []uint64{}
		settle := func(lease uint64) runner.Intake { under = append(under, lease); return c }
		require.Error(t, runner.Settle(t.Context(), cfg.JournalPath, settle))
		c.Fail(nil)
		require.NoError(t, runner.Settle(t.Context(), cfg.JournalPath, settle))
		require.Equal(t, []uint64{2, 2}, under)
		state := c.Snapshot()
		require.NotNil(t, state.Allocation(first.AllocID).Claim)
		require.True(t, state.Allocation(second.AllocID).Terminal())
		require.Contains(t, []string{first.AllocID, second.AllocID}, ended.ID)
		require.NoError(t, runner.Settle(t.Context(), cfg.JournalPath, settle))
		require.Len(t, under, 2, "nothing is left")
	})
}

// A claim of runners that another server may hand out at any time is answered only when the log has it.
func TestAClaimThatIsSure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := exectest.NewControl()
		s, _ := exectest.Start(t, c, runner.Config{Sure: true})
		exectest.Put(t, s, "python", 0)
		c.StopRefill()
		c.Add("python")
		synctest.Wait()
		before := c.ClaimEntries()
		_, err := s.Claim(t.Context(), claimReq("python"))
		require.NoError(t, err)
		require.Equal(t, before+1, c.ClaimEntries())

		taken := c.Add("python")
		synctest.Wait()
		c.Fail(drover.Errorf(drover.NotLeader, "another leads"))
		_, err = s.Claim(t.Context(), claimReq("python"))
		require.Equal(t, drover.NotLeader, drover.CodeOf(err))
		c.Fail(nil)
		time.Sleep(time.Minute)
		require.True(t, c.Snapshot().Allocation(taken.ID).Terminal(), "it is not handed out later")
	})
}

// A server that was stopped, and goes on, finds runners idle that another server took over and has in use by now.
func TestNothingIsIdleWhileTheLeasesDoNotHold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := exectest.NewControl()
		deps := c.Deps()
		var holds atomic.Bool
		holds.Store(true)
		deps.Holds = holds.Load
		s, err := runner.New(runner.Config{Lease: 2}, deps)
		require.NoError(t, err)
		ctx, end := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- s.Run(ctx) }() // ends with ctx
		exectest.Put(t, s, "python", 0)
		c.StopRefill()
		c.AddLeased("python", 2)
		synctest.Wait()
		r := claimReq("python")
		r.IdleTimeout = time.Minute
		got, err := s.Claim(t.Context(), r)
		require.NoError(t, err)
		holds.Store(false)
		time.Sleep(2 * time.Minute)
		_, err = s.Runner(t.Context(), got.ID)
		require.NoError(t, err)
		holds.Store(true)
		time.Sleep(2 * time.Second)
		_, err = s.Runner(t.Context(), got.ID)
		require.Equal(t, drover.Gone, drover.CodeOf(err))
		end()
		require.NoError(t, <-done)
	})
}
