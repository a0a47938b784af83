package runner_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/exec/environment"
	"github.com/drover-project/drover/internal/exec/exectest"
	"github.com/drover-project/drover/internal/exec/runner"
)

func TestClaimedRunnersAreReplacedAndNeverHandedOutTwice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := exectest.NewControl()
		s, stop := exectest.Start(t, c, journalIn(t.TempDir()))
		exectest.Put(t, s, "python", 5)
		synctest.Wait()
		var mu sync.Mutex
		seen := map[string]bool{}
		var claimers sync.WaitGroup
		for range 50 {
			claimers.Go(func() { // ends when it was served
				r, err := s.Claim(t.Context(), execution.ClaimRequest{Environment: "python", Wait: time.Minute})
				require.NoError(t, err)
				mu.Lock()
				defer mu.Unlock()
				unique(t, seen, r)
			})
		}
		claimers.Wait()
		settle()
		status, err := s.PoolStatus(t.Context(), "python")
		require.NoError(t, err)
		require.Equal(t, execution.PoolStatus{Environment: "python", Size: 5, Warm: 5, Claimed: 50}, status)
		stop()
	})
}

func TestClaimBindsWhatDiffersLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := exectest.NewControl()
		s, stop := exectest.Start(t, c, runner.Config{})
		exectest.Put(t, s, "python", 1)
		synctest.Wait()
		r, err := s.Claim(t.Context(), execution.ClaimRequest{
			Environment: "python", Env: map[string]string{"A": "b"}, Labels: map[string]string{"user": "7"}, IdleTimeout: time.Hour,
		})
		require.NoError(t, err)
		require.Equal(t, "python-"+r.AllocID, r.ID)
		require.Equal(t, execution.RunnerClaimed, r.State)
		synctest.Wait()
		recorded := c.Snapshot().Allocation(r.AllocID).Claim
		require.NotNil(t, recorded)
		require.Equal(t, r.ID, recorded.RunnerID)
		require.Equal(t, map[string]string{"A": "b"}, recorded.Env)
		require.Equal(t, time.Hour, recorded.IdleTimeout)
		stop()
	})
}

func TestAnEmptyPool(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := exectest.NewControl()
		s, stop := exectest.Start(t, c, runner.Config{MaxWaiting: 1})
		_, err := s.Claim(t.Context(), claimReq("nothing"))
		require.Equal(t, drover.NotFound, drover.CodeOf(err))
		exectest.Put(t, s, "python", 0)
		c.StopRefill()
		_, err = s.Claim(t.Context(), claimReq("python"))
		require.Equal(t, drover.Exhausted, drover.CodeOf(err))

		began := time.Now()
		_, err = s.Claim(t.Context(), execution.ClaimRequest{Environment: "python", Wait: time.Second})
		require.Equal(t, drover.Exhausted, drover.CodeOf(err))
		require.Equal(t, time.Second, time.Since(began))

		waits := make(chan error, 1)
		go func() { // ends when a runner comes
			_, err := s.Claim(t.Context(), execution.ClaimRequest{Environment: "python", Wait: time.Minute})
			waits <- err
		}()
		synctest.Wait()
		_, err = s.Claim(t.Context(), execution.ClaimRequest{Environment: "python", Wait: time.Minute})
		require.Equal(t, drover.Exhausted, drover.CodeOf(err), "the line is full")
		c.Add("python")
		require.NoError(t, <-waits)

		go func() { // ends when the environment is deleted
			_, err := s.Claim(t.Context(), execution.ClaimRequest{Environment: "python", Wait: time.Minute})
			waits <- err
		}()
		synctest.Wait()
		require.NoError(t, s.DeleteEnvironment(t.Context(), "python"))
		require.Equal(t, drover.NotFound, drover.CodeOf(<-waits))
		stop()
	})
}

func TestTheIdleTimerStandsStillDuringAUse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := exectest.NewControl()
		s, stop := exectest.Start(t, c, runner.Config{})
		exectest.Put(t, s, "python", 2)
		synctest.Wait()
		r, err := s.Claim(t.Context(), execution.ClaimRequest{Environment: "python", IdleTimeout: 10 * time.Second})
		require.NoError(t, err)
		forever, err := s.Claim(t.Context(), execution.ClaimRequest{Environment: "python", IdleTimeout: -1})
		require.NoError(t, err)

		time.Sleep(9 * time.Second) // synctest's time
		use, err := s.Use(t.Context(), r.ID)
		require.NoError(t, err)
		time.Sleep(time.Hour)
		require.Nil(t, use.GoneReason())
		use.Done()
		use.Done()
		time.Sleep(9 * time.Second)
		_, err = s.Runner(t.Context(), r.ID)
		require.NoError(t, err)
		time.Sleep(time.Second)
		synctest.Wait()
		_, err = s.Runner(t.Context(), r.ID)
		require.ErrorIs(t, err, runner.ErrIdle)
		require.Equal(t, drover.Gone, drover.CodeOf(err))
		require.True(t, c.Snapshot().Allocation(r.AllocID).ServerTerminal())
		_, err = s.Runner(t.Context(), forever.ID)
		require.NoError(t, err)
		stop()
	})
}

func TestReleaseEndsUsesAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := exectest.NewControl()
		s, stop := exectest.Start(t, c, runner.Config{})
		exectest.Put(t, s, "python", 1)
		synctest.Wait()
		r, err := s.Claim(t.Context(), claimReq("python"))
		require.NoError(t, err)
		use, err := s.Use(t.Context(), r.ID)
		require.NoError(t, err)
		require.NoError(t, s.Release(t.Context(), r.ID))
		<-use.Gone()
		require.ErrorIs(t, use.GoneReason(), runner.ErrStopped)
		require.Equal(t, drover.Gone, drover.CodeOf(s.Release(t.Context(), r.ID)))
		_, err = s.Use(t.Context(), r.ID)
		require.Equal(t, drover.Gone, drover.CodeOf(err))
		use.Done()
		for _, unknown := range []string{"", "x", "python-" + c.NewID(), "-" + r.AllocID} {
			_, err = s.Use(t.Context(), unknown)
			require.Equal(t, drover.NotFound, drover.CodeOf(err), unknown)
		}
		stop()
	})
}

// A server that restarted knows its runners before their nodes have dialled it again.
func TestANodeIsWaitedForAMoment(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := exectest.NewControl()
		deps, back := c.Deps(), time.Now()
		find := deps.Workloads
		deps.Workloads = func(nodeID string) (exchange.Workloads, error) {
			if time.Now().Before(back) {
				return nil, drover.Errorf(drover.Unavailable, "node %s is away", nodeID)
			}
			return find(nodeID)
		}
		s, err := runner.New(runner.Config{}, deps)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); _ = s.Run(ctx) }() // ends with ctx
		exectest.Put(t, s, "python", 1)
		synctest.Wait()
		r, err := s.Claim(t.Context(), claimReq("python"))
		require.NoError(t, err)

		begin := time.Now()
		back = begin.Add(2 * time.Second)
		_, err = s.UseNow(t.Context(), r.ID)
		require.Equal(t, drover.Unavailable, drover.CodeOf(err))
		use, err := s.Use(t.Context(), r.ID)
		require.NoError(t, err)
		require.InDelta(t, 2, time.Since(begin).Seconds(), 0.1)
		use.Done()

		begin, back = time.Now(), time.Now().Add(time.Hour)
		_, err = s.Use(t.Context(), r.ID)
		require.Equal(t, drover.Unavailable, drover.CodeOf(err))
		require.InDelta(t, 5, time.Since(begin).Seconds(), 0.1)
		short, end := context.WithTimeout(t.Context(), time.Second)
		defer end()
		_, err = s.Use(short, r.ID)
		require.Equal(t, drover.Unavailable, drover.CodeOf(err))
		require.InDelta(t, 6, time.Since(begin).Seconds(), 0.1)
		cancel()
		<-done
	})
}

func TestARunnerThatEndsIsGoneWithItsReason(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := exectest.NewControl()
		s, stop := exectest.Start(t, c, runner.Config{})
		exectest.Put(t, s, "python", 2)
		synctest.Wait()
		r, err := s.Claim(t.Context(), claimReq("python"))
		require.NoError(t, err)
		synctest.Wait()
		c.Update(r.AllocID, func(a *drover.Allocation) {
			a.ClientStatus = drover.AllocClientFailed
			a.TaskStates = map[string]*drover.TaskState{"runner": {Events: []*drover.TaskEvent{
				{Type: drover.TaskTerminated, Details: map[string]string{"oom_killed": "true"}},
			}}}
		})
		synctest.Wait()
		_, err = s.Use(t.Context(), r.ID)
		require.ErrorIs(t, err, runner.ErrOOM)

		warm, err := s.Runners(t.Context(), "default", "python")
		require.NoError(t, err)
		require.Len(t, warm, 2)
		c.Update(warm[0].AllocID, func(a *drover.Allocation) { a.ClientStatus = drover.AllocClientLost })
		synctest.Wait()
		status, err := s.PoolStatus(t.Context(), "python")
		require.NoError(t, err)
		require.Equal(t, 2, status.Warm, "it was replaced")

		r, err = s.Claim(t.Context(), claimReq("python"))
		require.NoError(t, err)
		synctest.Wait()
		c.Update(r.AllocID, func(a *drover.Allocation) { // as a plan that replaces it does
			a.ClientStatus, a.DesiredStatus = drover.AllocClientLost, drover.AllocDesiredStop
		})
		synctest.Wait()
		_, err = s.Use(t.Context(), r.ID)
		require.ErrorContains(t, err, "lost")
		require.NotErrorIs(t, err, runner.ErrStopped)

		r, err = s.Claim(t.Context(), claimReq("python"))
		require.NoError(t, err)
		synctest.Wait()
		c.Update(r.AllocID, func(a *drover.Allocation) { // as an agent that does not find it after a reboot does
			a.ClientStatus = drover.AllocClientFailed
			a.TaskStates = map[string]*drover.TaskState{"runner": {Events: []*drover.TaskEvent{
				{Type: drover.TaskRestoreFailed, DisplayMessage: "task is gone"}, {Type: drover.TaskNotRestarting},
			}}}
		})
		synctest.Wait()
		_, err = s.Use(t.Context(), r.ID)
		require.ErrorContains(t, err, "failed: task is gone")
		stop()
	})
}

func TestAClaimThatControlRefusesIsGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := exectest.NewControl()
		s, stop := exectest.Start(t, c, runner.Config{})
		exectest.Put(t, s, "python", 1)
		synctest.Wait()
		c.Fail(drover.Errorf(drover.Unavailable, "no leader"))
		r, err := s.Claim(t.Context(), claimReq("python"))
		require.NoError(t, err)
		synctest.Wait()
		_, err = s.Runner(t.Context(), r.ID)
		require.NoError(t, err, "it is the claimer's while control is away")
		c.Update(r.AllocID, func(a *drover.Allocation) { a.Claim = &drover.Claim{RunnerID: "somebody else's"} })
		c.Fail(nil)
		time.Sleep(5 * time.Second) // synctest's time: the retry
		synctest.Wait()
		_, err = s.Runner(t.Context(), r.ID)
		require.Equal(t, drover.Gone, drover.CodeOf(err))
		stop()
	})
}

func TestPutEnvironmentUnchangedChangesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := exectest.NewControl()
		s, stop := exectest.Start(t, c, runner.Config{})
		env := execution.Environment{ID: "python", Image: "host", PoolSize: 3}
		created, err := s.PutEnvironment(t.Context(), env)
		require.NoError(t, err)
		require.True(t, created)
		synctest.Wait()
		index := c.Snapshot().Index()
		created, err = s.PutEnvironment(t.Context(), env)
		require.NoError(t, err)
		require.False(t, created)
		require.Equal(t, index, c.Snapshot().Index())
		env.CPU = 77
		_, err = s.PutEnvironment(t.Context(), env)
		require.NoError(t, err)
		require.Greater(t, c.Snapshot().Index(), index)
		envs, err := s.Environments(t.Context(), "default")
		require.NoError(t, err)
		require.Len(t, envs, 1)
		require.Equal(t, 77, envs[0].CPU)
		env.Image = "NOT VALID"
		_, err = s.PutEnvironment(t.Context(), env)
		require.Equal(t, drover.Invalid, drover.CodeOf(err))
		require.Equal(t, drover.NotFound, drover.CodeOf(s.DeleteEnvironment(t.Context(), "other")))
		stop()
	})
}

// TestAPoolIsResizedFromWhatIsKnown: of those who know the same size one wins, and the others hear what it is by now; nothing else of the
// environment is lost, however many change it at once.
func TestAPoolIsResizedFromWhatIsKnown(t *testing.T) {
	t.Parallel()
	c := exectest.NewControl()
	s, stop := exectest.Start(t, c, runner.Config{})
	defer stop()
	_, err := s.PutEnvironment(t.Context(), execution.Environment{ID: "python", Image: "host", PoolSize: 1, CPU: 77})
	require.NoError(t, err)
	for range 50 {
		var asked sync.WaitGroup
		won, lost := make(chan int, 4), make(chan error, 4)
		for n := range cap(won) {
			asked.Go(func() {
				env, err := s.ResizePool(t.Context(), "python", 2+n, new(1))
				if err != nil {
					lost <- err
					return
				}
				won <- env.PoolSize
			})
		}
		asked.Wait()
		require.Len(t, won, 1)
		require.Len(t, lost, 3)
		now := <-won
		for range 3 {
			err := <-lost
			require.Equal(t, drover.Conflict, drover.CodeOf(err))
			require.ErrorContains(t, err, fmt.Sprintf("poolSize is %d, not 1", now))
		}
		errs := make(chan error, 2)
		for range cap(errs) { // these do not care what it was
			asked.Go(func() {
				_, err := s.ResizePool(t.Context(), "python", 1, nil)
				errs <- err
			})
		}
		asked.Wait()
		require.NoError(t, <-errs)
		require.NoError(t, <-errs)
		env, err := s.Environment(t.Context(), "python")
		require.NoError(t, err)
		require.Equal(t, 77, env.CPU)
		require.Equal(t, 1, env.PoolSize)
	}
	_, err = s.ResizePool(t.Context(), "nothing", 1, nil)
	require.Equal(t, drover.NotFound, drover.CodeOf(err))
	_, err = s.ResizePool(t.Context(), "python", -1, nil)
	require.Equal(t, drover.Invalid, drover.CodeOf(err))
}

// What is handed out stays handed out, whatever is recorded when the server dies.
func TestNeverTwiceAcrossCrashes(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp(root, "")
		require.NoError(t, err)
		c := exectest.NewControl()
		seen, released := map[string]bool{}, map[string]bool{}
		held := []string{}
		for round := range rapid.IntRange(1, 4).Draw(t, "rounds") {
			s, err := runner.New(journalIn(dir), c.Deps())
			require.NoError(t, err)
			ctx, cancel := context.WithCancel(context.Background())
			done := make(chan struct{})
			go func() { defer close(done); _ = s.Run(ctx) }() // ends with ctx
			if round == 0 {
				_, err := s.PutEnvironment(ctx, execution.Environment{ID: "e", Image: "host", PoolSize: 4})
				require.NoError(t, err)
			}
			for _, id := range held {
				r, err := s.Runner(ctx, id)
				if released[id] {
					require.Equal(t, drover.Gone, drover.CodeOf(err), "released before the crash")
				} else {
					require.NoError(t, err, "it is still the claimer's")
					require.Equal(t, id, r.ID)
				}
			}
			for range rapid.IntRange(0, 8).Draw(t, "steps") {
				switch rapid.IntRange(0, 3).Draw(t, "step") {
				case 0, 1:
					r, err := s.Claim(ctx, claimReq("e"))
					if err != nil {
						require.Equal(t, drover.Exhausted, drover.CodeOf(err))
						continue
					}
					require.False(t, seen[r.AllocID], "handed out twice")
					seen[r.AllocID] = true
					held = append(held, r.ID)
				case 2:
					if len(held) > 0 {
						id := held[len(held)-1]
						err := s.Release(ctx, id)
						if released[id] {
							require.Equal(t, drover.Gone, drover.CodeOf(err))
						} else {
							require.NoError(t, err)
						}
						released[id] = true
					}
				case 3: // control goes away, or comes back
					if c.Failing() {
						c.Fail(nil)
					} else {
						c.Fail(drover.Errorf(drover.Unavailable, "no leader"))
					}
				}
			}
			cancel()
			<-done
			if rapid.Bool().Draw(t, "torn") {
				f, err := os.OpenFile(filepath.Join(dir, "claims.journal"), os.O_APPEND|os.O_WRONLY, 0)
				require.NoError(t, err)
				_, err = f.WriteString(`{"claim":{"all`)
				require.NoError(t, err)
				require.NoError(t, f.Close())
			}
		}
	})
}

// A claimed runner outlives the replacement of its environment, and restarts, as what it was made of: another image's
// user is not in it.
func TestAClaimedRunnerStaysWhatItWasMadeOf(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := exectest.NewControl()
		s, stop := exectest.Start(t, c, runner.Config{})
		_, err := s.PutEnvironment(t.Context(), execution.Environment{ID: "python", Image: "host", PoolSize: 1, User: "old"})
		require.NoError(t, err)
		exectest.AwaitWarm(t, s, 1)
		r, err := s.Claim(t.Context(), execution.ClaimRequest{Environment: "python"})
		require.NoError(t, err)
		time.Sleep(time.Second) // synctest's time: the claim is recorded
		_, err = s.PutEnvironment(t.Context(), execution.Environment{ID: "python", Image: "host", PoolSize: 1, User: "other"})
		require.NoError(t, err)
		use, err := s.Use(t.Context(), r.ID)
		require.NoError(t, err)
		require.Equal(t, "other", use.Environment().User, "bound late: runners need not be made anew for it")
		use.Done()
		made := *c.Snapshot().Job("default", environment.JobOf("python").ID)
		made.Version = 7
		c.Update(r.AllocID, func(a *drover.Allocation) { a.Job = &made })
		synctest.Wait()
		_, err = s.PutEnvironment(t.Context(), execution.Environment{ID: "python", Image: "busybox:1", PoolSize: 1, User: "new"})
		require.NoError(t, err)
		for range 2 {
			use, err := s.Use(t.Context(), r.ID)
			require.NoError(t, err)
			require.Equal(t, "other", use.Environment().User)
			use.Done()
			stop()
			s, stop = exectest.Start(t, c, runner.Config{})
		}
		stop()
	})
}
