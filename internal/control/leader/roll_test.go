package leader_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/leader"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/tables"
)

// reportHealth plays what nodes say of services' allocations, until the test ends.
func (c *cluster) reportHealth(t *testing.T, healthy bool) {
	done := make(chan struct{})
	ctx := t.Context()
	go func() { // ends with the test's context
		defer close(done)
		for {
			changed := c.store.Watch(tables.Allocs, "")
			for a := range c.store.Snapshot().Allocations("*", "") {
				if a.Job.Type != drover.JobTypeService || a.ClientStatus != drover.AllocClientRunning || a.DeploymentStatus != nil &&
					a.DeploymentStatus.Healthy != nil {
					continue
				}
				_ = c.nodes.Push(ctx, a.NodeID, []exchange.AllocUpdate{{
					ID: a.ID, ClientStatus: a.ClientStatus, TaskStates: a.TaskStates,
					DeploymentStatus: &drover.AllocDeploymentStatus{Healthy: &healthy, Timestamp: time.Now()},
				}})
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	}()
	t.Cleanup(func() { <-done })
}

func rolling(count int) *drover.Job {
	j := testJob("s", drover.JobTypeService, count)
	j.Update = &drover.UpdateStrategy{MaxParallel: new(1), AutoRevert: true}
	return j
}

func (c *cluster) deployment(s *store.Snapshot, version uint64) *drover.Deployment {
	for d := range s.DeploymentsByJob("default", "s") {
		if d.JobVersion == version {
			return d
		}
	}
	return nil
}

func (c *cluster) untilDeployment(version uint64, status string) {
	c.t.Helper()
	c.until("deployment "+status, func(s *store.Snapshot) bool {
		d := c.deployment(s, version)
		return d != nil && d.Status == status
	})
}

func TestDeploymentRollsToSuccess(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, leader.Config{})
		c.agent(testNode("n1", 10_000), false)
		c.reportHealth(t, true)
		c.register(rolling(3))
		c.untilDeployment(0, drover.DeploymentSuccessful)
		j := rolling(3)
		j.TaskGroups[0].Tasks[0].Env = map[string]string{"A": "2"}
		c.register(j)
		c.untilDeployment(1, drover.DeploymentSuccessful)
		s := c.store.Snapshot()
		require.True(t, s.Job("default", "s").Stable)
		for _, a := range c.allocs(s, "s", isRunning) {
			require.EqualValues(t, 1, a.Job.Version)
		}
	})
}

func TestFailedDeploymentReverts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, leader.Config{})
		c.agent(testNode("n1", 10_000), false)
		c.register(rolling(1))
		c.until("running", func(s *store.Snapshot) bool { return len(c.allocs(s, "s", isRunning)) == 1 })
		a := c.allocs(c.store.Snapshot(), "s", isRunning)[0]
		_, err := c.intake.SetAllocHealth(t.Context(), a.DeploymentID, []string{a.ID}, nil)
		require.NoError(t, err)
		c.untilDeployment(0, drover.DeploymentSuccessful)
		j := rolling(1)
		j.TaskGroups[0].Tasks[0].Env = map[string]string{"A": "2"}
		c.register(j)
		c.untilDeployment(1, drover.DeploymentFailed) // by the progress deadline: nobody says that it is healthy
		c.until("reverted", func(s *store.Snapshot) bool {
			running := c.allocs(s, "s", isRunning)
			return s.Job("default", "s").Version == 2 && len(running) == 1 && running[0].Job.Version == 2
		})
		require.Empty(t, c.store.Snapshot().Job("default", "s").TaskGroups[0].Tasks[0].Env)
	})
}

func TestAutoPromote(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, leader.Config{})
		c.agent(testNode("n1", 10_000), false)
		c.reportHealth(t, true)
		j := rolling(2)
		j.Update.Canary, j.Update.AutoPromote = 1, true
		c.register(j)
		c.untilDeployment(0, drover.DeploymentSuccessful)
		j.TaskGroups[0].Tasks[0].Env = map[string]string{"A": "2"}
		c.register(j)
		c.untilDeployment(1, drover.DeploymentSuccessful)
	})
}

func TestDrain(t *testing.T) {
	t.Run("by a person", func(t *testing.T) { drains(t, false) })
	t.Run("by the fleet", func(t *testing.T) { drains(t, true) })
}

func drains(t *testing.T, moveBatch bool) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, leader.Config{})
		c.agent(testNode("n1", 10_000), false)
		c.register(testPool("env", 2))
		j := testJob("s", drover.JobTypeService, 3)
		j.Update = &drover.UpdateStrategy{MaxParallel: new(0)}
		c.register(j)
		c.register(testJob("b", drover.JobTypeBatch, 1))
		c.until("running", func(s *store.Snapshot) bool {
			return len(c.allocs(s, "s", isRunning)) == 3 && len(c.allocs(s, "env", isRunning)) == 2 && len(c.allocs(s, "b", isRunning)) == 1
		})
		c.agent(testNode("n2", 10_000), false)
		_, err := c.intake.DrainNode(t.Context(),
			drover.DrainRequest{NodeID: "n1", Spec: &drover.DrainSpec{Deadline: time.Hour, MoveBatch: moveBatch}})
		require.NoError(t, err)
		on := func(s *store.Snapshot, jobID, nodeID string) int {
			return len(c.allocs(s, jobID, func(a *drover.Allocation) bool { return isRunning(a) && a.NodeID == nodeID }))
		}
		synctest.Wait()
		require.Zero(t, on(c.store.Snapshot(), "s", "n2"), "nothing is known of the health of any")
		c.reportHealth(t, true)
		c.until("moved", func(s *store.Snapshot) bool { return on(s, "s", "n2") == 3 && on(s, "env", "n2") == 2 })
		synctest.Wait()
		s := c.store.Snapshot()
		require.Equal(t, 1, on(s, "b", "n1"), "a batch job may run on until the deadline")
		require.NotNil(t, s.Node("n1").DrainStrategy)
		c.until("drained", func(s *store.Snapshot) bool { return s.Node("n1").DrainStrategy == nil })
		s = c.store.Snapshot()
		require.Equal(t, "complete", s.Node("n1").LastDrain.Status)
		require.Equal(t, drover.NodeIneligible, s.Node("n1").SchedulingEligibility)
		if moveBatch {
			c.until("batch moved", func(s *store.Snapshot) bool { return on(s, "b", "n2") == 1 })
			return
		}
		c.until("batch ended", func(s *store.Snapshot) bool { return s.Job("default", "b").Status == drover.JobStatusDead })
		_, err = c.intake.DrainNode(t.Context(), drover.DrainRequest{NodeID: "n1", MarkEligible: true})
		require.NoError(t, err)
		_, err = c.intake.EvaluateJob(t.Context(), "default", "b", false)
		require.NoError(t, err)
		synctest.Wait()
		require.Empty(t, c.allocs(c.store.Snapshot(), "b", isRunning), "it is not begun anew")
	})
}

// A drain used to take the next away as soon as the replacement of the last one ran, well or not.
func TestDrainWaitsUntilWhatItMovedIsWell(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, leader.Config{})
		c.agent(testNode("n1", 10_000), false)
		j := testJob("s", drover.JobTypeService, 3)
		j.Update = &drover.UpdateStrategy{MaxParallel: new(0)}
		c.register(j)
		on := func(nodeID string) []*drover.Allocation {
			return c.allocs(c.store.Snapshot(), "s", func(a *drover.Allocation) bool { return isRunning(a) && a.NodeID == nodeID })
		}
		say := func(nodeID string, healthy bool) {
			for _, a := range on(nodeID) {
				require.NoError(t, c.nodes.Push(t.Context(), a.NodeID, []exchange.AllocUpdate{{
					ID: a.ID, ClientStatus: a.ClientStatus, TaskStates: a.TaskStates,
					DeploymentStatus: &drover.AllocDeploymentStatus{Healthy: &healthy, Timestamp: time.Now()},
				}}))
			}
		}
		c.until("running", func(*store.Snapshot) bool { return len(on("n1")) == 3 })
		say("n1", true)
		c.agent(testNode("n2", 10_000), false)
		_, err := c.intake.DrainNode(t.Context(), drover.DrainRequest{NodeID: "n1", Spec: &drover.DrainSpec{Deadline: time.Hour}})
		require.NoError(t, err)
		for moved, healthy := range []bool{true, false, true} {
			c.until("one more", func(*store.Snapshot) bool { return len(on("n2")) == moved+1 })
			time.Sleep(time.Minute)
			require.Len(t, on("n2"), moved+1)
			say("n2", healthy)
		}
		c.until("drained", func(s *store.Snapshot) bool { return s.Node("n1").DrainStrategy == nil })
	})
}

func TestAServiceScaledToNoneIsNoGarbage(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, leader.Config{})
		c.register(testJob("s", drover.JobTypeService, 0))
		c.until("dead", func(s *store.Snapshot) bool { return s.Job("default", "s").Status == drover.JobStatusDead })
		require.NoError(t, c.intake.CollectGarbage(t.Context()))
		require.NotNil(t, c.store.Snapshot().Job("default", "s"), "somebody means to scale it up again")
		_, err := c.intake.DeregisterJob(t.Context(), drover.DeregisterRequest{Namespace: "default", ID: "s"})
		require.NoError(t, err)
		c.until("over", func(s *store.Snapshot) bool { return s.Job("default", "s").Status == drover.JobStatusDead })
		synctest.Wait()
		require.NoError(t, c.intake.CollectGarbage(t.Context()))
		require.Nil(t, c.store.Snapshot().Job("default", "s"))
	})
}

func TestGarbage(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, leader.Config{})
		c.agent(testNode("n1", 10_000), true)
		c.register(testJob("b", drover.JobTypeBatch, 3))
		c.until("dead", func(s *store.Snapshot) bool { return s.Job("default", "b").Status == drover.JobStatusDead })
		start := time.Now()
		c.until("forgotten", func(s *store.Snapshot) bool { return s.Job("default", "b") == nil })
		require.GreaterOrEqual(t, time.Since(start), 4*time.Hour)
		synctest.Wait() // what was the job's goes with the entries behind
		for range c.store.Snapshot().Allocations("*", "") {
			t.Fatal("an allocation is left")
		}
		for range c.store.Snapshot().Evaluations("*", "") {
			t.Fatal("an evaluation is left")
		}

		c.register(testJob("b", drover.JobTypeBatch, 1))
		c.until("dead", func(s *store.Snapshot) bool { return s.Job("default", "b").Status == drover.JobStatusDead })
		require.NoError(t, c.intake.CollectGarbage(t.Context()))
		require.Nil(t, c.store.Snapshot().Job("default", "b"))
	})
}

// What batch jobs leave has an age of its own, server.batch_eval_gc_threshold.
func TestGarbageOfBatchJobs(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, leader.Config{GC: leader.GCConfig{Evals: time.Hour, BatchEvals: 3 * time.Hour, Jobs: 8 * time.Hour}})
		c.agent(testNode("n1", 10_000), true)
		for _, of := range []struct {
			kind string
			age  time.Duration
		}{{drover.JobTypeService, time.Hour}, {drover.JobTypeBatch, 3 * time.Hour}} {
			c.register(testJob(of.kind, of.kind, 1))
			c.until("placed", func(s *store.Snapshot) bool { return len(slices.Collect(s.AllocationsByJob("default", of.kind))) > 0 })
			_, err := c.intake.DeregisterJob(t.Context(), drover.DeregisterRequest{Namespace: "default", ID: of.kind})
			require.NoError(t, err)
			start := time.Now()
			c.until("forgotten", func(s *store.Snapshot) bool { return len(slices.Collect(s.EvaluationsByJob("default", of.kind))) == 0 })
			require.InDelta(t, of.age, time.Since(start), float64(11*time.Minute), of.kind)
		}
	})
}

// With enabled_schedulers jobs of other types wait, until somebody changes it.
func TestSchedulersOfSomeTypes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, leader.Config{Types: []string{drover.JobTypeService}})
		c.agent(testNode("n1", 10_000), false)
		c.register(testJob("b", drover.JobTypeBatch, 1))
		c.register(testJob("s", drover.JobTypeService, 1))
		placed := func(id string) int { return len(slices.Collect(c.store.Snapshot().AllocationsByJob("default", id))) }
		c.until("placed", func(*store.Snapshot) bool { return placed("s") == 1 })
		synctest.Wait()
		require.Zero(t, placed("b"))
		require.NoError(t, c.leader.SetSchedulers(1, []string{drover.JobTypeBatch}))
		c.until("placed", func(*store.Snapshot) bool { return placed("b") == 1 })
	})
}

// The deadline passes while nothing else happens: the timer that was made with an evaluation's proposal must not be lost.
func TestADeploymentWithoutProgressFailsInTime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, leader.Config{})
		c.agent(testNode("n1", 10_000), false)
		j := rolling(1)
		j.Update.ProgressDeadline, j.Update.HealthyDeadline = new(time.Minute), 30*time.Second
		c.register(j)
		start := time.Now()
		c.untilDeployment(0, drover.DeploymentFailed) // nobody says that it is healthy
		require.Less(t, time.Since(start), 61*time.Second)
	})
}

// A job that waits for capacity longer than its progress deadline is rolled out when there is some.
func TestWaitingForCapacityIsNoFailure(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, leader.Config{})
		c.reportHealth(t, true)
		j := rolling(2)
		j.Update.ProgressDeadline, j.Update.HealthyDeadline = new(time.Minute), 30*time.Second
		c.register(j)
		time.Sleep(time.Hour) // simulated
		synctest.Wait()
		require.Equal(t, drover.DeploymentRunning, c.deployment(c.store.Snapshot(), 0).Status)
		c.agent(testNode("n1", 10_000), false)
		c.untilDeployment(0, drover.DeploymentSuccessful)
	})
}
