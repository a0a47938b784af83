package leader_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/leader"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/tables"
)

func TestDiskFullAndRecovered(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, leader.Config{})
		_, err := c.nodes.Register(t.Context(), testNode("n1", 10_000))
		require.NoError(t, err)
		c.register(testJob("a", drover.JobTypeBatch, 1))
		c.until("placed", func(s *store.Snapshot) bool { return len(c.allocs(s, "a", wantedPending)) == 1 })
		// The next job is registered by the last entry that the disk takes.
		full := make(chan struct{})
		changed := c.store.Watch(tables.Jobs, tables.JobKey("default", "b"))
		go func() { <-changed; c.log.setFull(true); close(full) }() // ends with the registration
		c.register(testJob("b", drover.JobTypeBatch, 1))
		<-full
		clock.Sleep(t.Context(), clock.Wall{}, 15*time.Second)
		c.log.setFull(false)
		c.until("placed", func(s *store.Snapshot) bool { return len(c.allocs(s, "b", wantedPending)) == 1 })
		for e := range c.store.Snapshot().Evaluations("*", "") {
			require.NotEqual(t, drover.EvalFailed, e.Status)
		}
	})
}

func TestALeaderThatCannotWriteTriesAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, leader.Config{})
		c.stop()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		c.log.setFull(true)
		go func() { defer close(ended); c.leader.Lead(ctx, c.log) }() // ends with cancel
		synctest.Wait()
		require.False(t, c.leader.Leading())
		c.log.setFull(false)
		clock.Sleep(ctx, clock.Wall{}, 2*time.Second)
		synctest.Wait()
		require.True(t, c.leader.Leading())
		cancel()
		<-ended
		require.False(t, c.leader.Leading())
		require.Equal(t, drover.NotLeader, drover.CodeOf(c.leader.CollectGarbage(t.Context())))
	})
}

func TestSupersededEvaluationsAreCancelled(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, leader.Config{})
		c.stop()
		for range 4 {
			c.register(testJob("j", drover.JobTypeBatch, 1))
		}
		c.start()
		c.until("all ended but the blocked one", func(s *store.Snapshot) bool {
			counts := map[string]int{}
			for e := range s.EvaluationsByJob("default", "j") {
				counts[e.Status]++
			}
			return counts[drover.EvalPending] == 0 && counts[drover.EvalBlocked] == 1 && counts[drover.EvalCanceled] >= 2
		})
	})
}

func TestPausedBroker(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, leader.Config{Workers: 1})
		_, _, err := c.intake.SetSchedulerConfig(t.Context(), drover.SchedulerConfiguration{PauseEvalBroker: true}, false)
		require.NoError(t, err)
		_, err = c.nodes.Register(t.Context(), testNode("n1", 10_000))
		require.NoError(t, err)
		synctest.Wait()
		c.register(testJob("first", drover.JobTypeBatch, 1)) // the worker was waiting already: it takes one
		synctest.Wait()
		c.register(testJob("second", drover.JobTypeBatch, 1))
		synctest.Wait()
		require.Empty(t, c.allocs(c.store.Snapshot(), "second", wantedPending))
		_, _, err = c.intake.SetSchedulerConfig(t.Context(), drover.SchedulerConfiguration{}, false)
		require.NoError(t, err)
		c.until("placed", func(s *store.Snapshot) bool { return len(c.allocs(s, "second", wantedPending)) == 1 })
	})
}

// The schedulers of a leader that runs are changed: none decide nothing, and those for one type leave the others.
func TestSchedulersAreChanged(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, leader.Config{})
		_, err := c.nodes.Register(t.Context(), testNode("n1", 10_000))
		require.NoError(t, err)
		synctest.Wait()
		require.NoError(t, c.leader.SetSchedulers(0, nil))
		synctest.Wait()
		c.register(testJob("batch", drover.JobTypeBatch, 1))
		c.register(testJob("service", drover.JobTypeService, 1))
		synctest.Wait()
		require.Empty(t, c.allocs(c.store.Snapshot(), "batch", wantedPending))
		require.NoError(t, c.leader.SetSchedulers(1, []string{drover.JobTypeService}))
		c.until("placed", func(s *store.Snapshot) bool { return len(c.allocs(s, "service", wantedPending)) == 1 })
		require.Empty(t, c.allocs(c.store.Snapshot(), "batch", wantedPending))
		require.NoError(t, c.leader.SetSchedulers(2, []string{drover.JobTypeService, drover.JobTypeBatch}))
		c.until("placed", func(s *store.Snapshot) bool { return len(c.allocs(s, "batch", wantedPending)) == 1 })
		require.Error(t, c.leader.SetSchedulers(-1, nil))
		require.Error(t, c.leader.SetSchedulers(1, []string{"_core"}))
	})
}

func TestSystemJobFollowsNodes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, leader.Config{})
		c.agent(testNode("n1", 10_000), false)
		c.register(testJob("sys", drover.JobTypeSystem, 1))
		c.until("on one", func(s *store.Snapshot) bool { return len(c.allocs(s, "sys", isRunning)) == 1 })
		c.agent(testNode("n2", 10_000), false)
		c.until("on both", func(s *store.Snapshot) bool { return len(c.allocs(s, "sys", isRunning)) == 2 })
	})
}

func TestFailedAllocationIsRescheduled(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, leader.Config{})
		c.agent(testNode("n1", 10_000), false)
		j := testJob("s", drover.JobTypeService, 1)
		j.Update = &drover.UpdateStrategy{MaxParallel: new(0)}
		c.register(j)
		c.until("running", func(s *store.Snapshot) bool { return len(c.allocs(s, "s", isRunning)) == 1 })
		first := c.allocs(c.store.Snapshot(), "s", isRunning)[0]
		start := time.Now()
		require.NoError(t, c.nodes.Push(t.Context(), "n1", []exchange.AllocUpdate{{
			ID: first.ID, ClientStatus: drover.AllocClientFailed,
			TaskStates: map[string]*drover.TaskState{"t": {State: "dead", Failed: true, FinishedAt: start}},
		}}))
		c.until("replaced", func(s *store.Snapshot) bool {
			running := c.allocs(s, "s", isRunning)
			return len(running) == 1 && running[0].PreviousAllocation == first.ID
		})
		require.InDelta(t, 30, time.Since(start).Seconds(), 6, "the policy's delay")
		require.Zero(t, c.log.count[command.KindDeleteEvals])
	})
}
