package runner

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"drover"
)

func TestClaimedRunnersAreReplacedAndNeverHandedOutTwice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newControl()
		s, stop := start(t, c, journalIn(t.TempDir()))
		put(t, s, "python", 5)
		synctest.Wait()
		var mu sync.Mutex
		seen := map[string]bool{}
		var claimers sync.WaitGroup
		for range 50 {
			claimers.Go(func() { // ends when it was served
				r, err := s.Claim(t.Context(), drover.ClaimRequest{Environment: "python", Wait: time.Minute})
				require.NoError(t, err)
				mu.Lock()
				defer mu.Unlock()
				unique(t, seen, r)
			})
		}
		claimers.Wait()
		synctest.Wait()
		status, err := s.PoolStatus(t.Context(), "python")
		require.NoError(t, err)
		require.Equal(t, drover.PoolStatus{Environment: "python", Size: 5, Warm: 5, Claimed: 50}, status)
		stop()
	})
}

func TestClaimBindsWhatDiffersLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newControl()
		s, stop := start(t, c, Config{})
		put(t, s, "python", 1)
		synctest.Wait()
		r, err := s.Claim(t.Context(), drover.ClaimRequest{
			Environment: "python", Env: map[string]string{"A": "b"}, Labels: map[string]string{"user": "7"}, IdleTimeout: time.Hour,
		})
		require.NoError(t, err)
		require.Equal(t, "python-"+r.AllocID, r.ID)
		require.Equal(t, drover.RunnerClaimed, r.State)
		synctest.Wait()
		recorded := c.snapshot().Allocation(r.AllocID).Claim
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
		c := newControl()
		s, stop := start(t, c, Config{MaxWaiting: 1})
		_, err := s.Claim(t.Context(), claimReq("nothing"))
		require.Equal(t, drover.NotFound, drover.CodeOf(err))
		put(t, s, "python", 0)
		_, err = s.Claim(t.Context(), claimReq("python"))
		require.Equal(t, drover.Exhausted, drover.CodeOf(err))

		began := time.Now()
		_, err = s.Claim(t.Context(), drover.ClaimRequest{Environment: "python", Wait: time.Second})
		require.Equal(t, drover.Exhausted, drover.CodeOf(err))
		require.Equal(t, time.Second, time.Since(began))

		waits := make(chan error, 1)
		go func() { // ends when a runner comes
			_, err := s.Claim(t.Context(), drover.ClaimRequest{Environment: "python", Wait: time.Minute})
			waits <- err
		}()
		synctest.Wait()
		_, err = s.Claim(t.Context(), drover.ClaimRequest{Environment: "python", Wait: time.Minute})
		require.Equal(t, drover.Exhausted, drover.CodeOf(err), "the line is full")
		c.mu.Lock()
		c.addLocked(jobOf("python"), drover.AllocClientRunning)
		c.mu.Unlock()
		require.NoError(t, <-waits)

		go func() { // ends when the environment is deleted
			_, err := s.Claim(t.Context(), drover.ClaimRequest{Environment: "python", Wait: time.Minute})
			waits <- err
		}()
		synctest.Wait()
		require.NoError(t, s.DeleteEnvironment(t.Context(), "python"))
		require.Equal(t, drover.NotFound, drover.CodeOf(<-waits))
		stop()
	})
}

func TestTheIdleTimerStandsStillDuringALease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newControl()
		s, stop := start(t, c, Config{})
		put(t, s, "python", 2)
		synctest.Wait()
		r, err := s.Claim(t.Context(), drover.ClaimRequest{Environment: "python", IdleTimeout: 10 * time.Second})
		require.NoError(t, err)
		forever, err := s.Claim(t.Context(), drover.ClaimRequest{Environment: "python", IdleTimeout: -1})
		require.NoError(t, err)

		time.Sleep(9 * time.Second) // synctest's time
		lease, err := s.Acquire(t.Context(), r.ID)
		require.NoError(t, err)
		time.Sleep(time.Hour)
		require.Nil(t, lease.GoneReason())
		lease.Done()
		lease.Done()
		time.Sleep(9 * time.Second)
		_, err = s.Runner(t.Context(), r.ID)
		require.NoError(t, err)
		time.Sleep(time.Second)
		synctest.Wait()
		_, err = s.Runner(t.Context(), r.ID)
		require.ErrorIs(t, err, ErrIdle)
		require.Equal(t, drover.Gone, drover.CodeOf(err))
		require.True(t, c.snapshot().Allocation(r.AllocID).ServerTerminal())
		_, err = s.Runner(t.Context(), forever.ID)
		require.NoError(t, err)
		stop()
	})
}

func TestReleaseEndsLeasesAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newControl()
		s, stop := start(t, c, Config{})
		put(t, s, "python", 1)
		synctest.Wait()
		r, err := s.Claim(t.Context(), claimReq("python"))
		require.NoError(t, err)
		lease, err := s.Acquire(t.Context(), r.ID)
		require.NoError(t, err)
		require.NoError(t, s.Release(t.Context(), r.ID))
		<-lease.Gone()
		require.ErrorIs(t, lease.GoneReason(), ErrStopped)
		require.Equal(t, drover.Gone, drover.CodeOf(s.Release(t.Context(), r.ID)))
		_, err = s.Acquire(t.Context(), r.ID)
		require.Equal(t, drover.Gone, drover.CodeOf(err))
		lease.Done()
		for _, unknown := range []string{"", "x", "python-" + c.ids.New(), "-" + r.AllocID} {
			_, err = s.Acquire(t.Context(), unknown)
			require.Equal(t, drover.NotFound, drover.CodeOf(err), unknown)
		}
		stop()
	})
}

func TestARunnerThatEndsIsGoneWithItsReason(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newControl()
		s, stop := start(t, c, Config{})
		put(t, s, "python", 2)
		synctest.Wait()
		r, err := s.Claim(t.Context(), claimReq("python"))
		require.NoError(t, err)
		synctest.Wait()
		c.update(r.AllocID, func(a *drover.Allocation) {
			a.ClientStatus = drover.AllocClientFailed
			a.TaskStates = map[string]*drover.TaskState{"runner": {Events: []*drover.TaskEvent{
				{Type: drover.TaskTerminated, Details: map[string]string{"oom_killed": "true"}},
			}}}
		})
		synctest.Wait()
		_, err = s.Acquire(t.Context(), r.ID)
		require.ErrorIs(t, err, ErrOOM)

		warm, err := s.Runners(t.Context(), "python")
		require.NoError(t, err)
		require.Len(t, warm, 2)
		c.update(warm[0].AllocID, func(a *drover.Allocation) { a.ClientStatus = drover.AllocClientLost })
		synctest.Wait()
		status, err := s.PoolStatus(t.Context(), "python")
		require.NoError(t, err)
		require.Equal(t, 2, status.Warm, "it was replaced")
		stop()
	})
}

func TestAClaimThatControlRefusesIsGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newControl()
		s, stop := start(t, c, Config{})
		put(t, s, "python", 1)
		synctest.Wait()
		c.mu.Lock()
		c.failing = drover.Errorf(drover.Unavailable, "no leader")
		c.mu.Unlock()
		r, err := s.Claim(t.Context(), claimReq("python"))
		require.NoError(t, err)
		synctest.Wait()
		_, err = s.Runner(t.Context(), r.ID)
		require.NoError(t, err, "it is the claimer's while control is away")
		c.mu.Lock()
		c.failing = nil
		other := *c.allocs[r.AllocID]
		other.Claim = &drover.Claim{RunnerID: "somebody else's"}
		c.allocs[other.ID] = &other
		c.mu.Unlock()
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
		c := newControl()
		s, stop := start(t, c, Config{})
		env := drover.Environment{ID: "python", Image: "host", PoolSize: 3}
		created, err := s.PutEnvironment(t.Context(), env)
		require.NoError(t, err)
		require.True(t, created)
		synctest.Wait()
		index := c.snapshot().Index()
		created, err = s.PutEnvironment(t.Context(), env)
		require.NoError(t, err)
		require.False(t, created)
		require.Equal(t, index, c.snapshot().Index())
		env.CPU = 77
		_, err = s.PutEnvironment(t.Context(), env)
		require.NoError(t, err)
		require.Greater(t, c.snapshot().Index(), index)
		envs, err := s.Environments(t.Context())
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

// What is handed out stays handed out, whatever is recorded when the server dies.
func TestNeverTwiceAcrossCrashes(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp(root, "")
		require.NoError(t, err)
		c := newControl()
		seen, released := map[string]bool{}, map[string]bool{}
		held := []string{}
		for round := range rapid.IntRange(1, 4).Draw(t, "rounds") {
			s, err := New(journalIn(dir), c.deps())
			require.NoError(t, err)
			ctx, cancel := context.WithCancel(context.Background())
			done := make(chan struct{})
			go func() { defer close(done); _ = s.Run(ctx) }() // ends with ctx
			if round == 0 {
				_, err := s.PutEnvironment(ctx, drover.Environment{ID: "e", Image: "host", PoolSize: 4})
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
					c.mu.Lock()
					if c.failing == nil {
						c.failing = drover.Errorf(drover.Unavailable, "no leader")
					} else {
						c.failing = nil
					}
					c.mu.Unlock()
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

func TestTheJournalIsCompacted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j, err := openJournal(filepath.Join(dir, "j"))
	require.NoError(t, err)
	big := map[string]string{"x": string(make([]byte, 1000))}
	for i := range 400 {
		c := AllocClaim{AllocID: string(rune('a' + i)), Claim: drover.Claim{RunnerID: "r", Env: big}}
		require.NoError(t, j.claim(c))
	}
	keep := AllocClaim{AllocID: "keep"}
	require.NoError(t, j.claim(keep))
	require.NoError(t, j.release("stopped"))
	var ids []string
	for i := range 400 {
		ids = append(ids, string(rune('a'+i)))
	}
	require.NoError(t, j.claimsRecorded(ids))
	require.NoError(t, j.release("after"))
	require.NoError(t, j.close())
	again, err := openJournal(filepath.Join(dir, "j"))
	require.NoError(t, err)
	lines, err := again.read()
	require.NoError(t, err)
	require.Len(t, lines, 3)
	require.Less(t, again.size, int64(1000))
	require.NoError(t, again.close())
}

func BenchmarkClaim(b *testing.B) {
	c := newControl()
	c.refill = false
	s, _ := start(b, c, journalIn(b.TempDir()))
	put(b, s, "python", 0)
	c.mu.Lock()
	for range b.N {
		c.addLocked(jobOf("python"), drover.AllocClientRunning)
	}
	c.mu.Unlock()
	awaitWarm(b, c, s, b.N)
	b.ResetTimer()
	for range b.N {
		if _, err := s.Claim(b.Context(), claimReq("python")); err != nil {
			b.Fatal(err)
		}
	}
}
