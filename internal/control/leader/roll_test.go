package leader_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"drover"
	"drover/internal/control/intake"
	"drover/internal/control/leader"
	"drover/internal/control/store"
)

// reportHealth plays what nodes say of allocations in deployments, until the test ends.
func (c *cluster) reportHealth(t *testing.T, healthy bool) {
	done := make(chan struct{})
	ctx := t.Context()
	go func() { // ends with the test's context
		defer close(done)
		for {
			changed := c.store.Watch(store.TableAllocs, "")
			for a := range c.store.Snapshot().Allocations("*", "") {
				if a.DeploymentID == "" || a.ClientStatus != drover.AllocClientRunning || a.DeploymentStatus != nil && a.DeploymentStatus.Healthy != nil {
					continue
				}
				_ = c.nodes.Push(ctx, a.NodeID, []drover.AllocUpdate{{
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
		_, err := c.intake.DrainNode(t.Context(), intake.DrainRequest{NodeID: "n1", Spec: &drover.DrainSpec{Deadline: time.Hour}})
		require.NoError(t, err)
		on := func(s *store.Snapshot, jobID, nodeID string) int {
			return len(c.allocs(s, jobID, func(a *drover.Allocation) bool { return isRunning(a) && a.NodeID == nodeID }))
		}
		c.until("moved", func(s *store.Snapshot) bool { return on(s, "s", "n2") == 3 && on(s, "env", "n2") == 2 })
		synctest.Wait()
		s := c.store.Snapshot()
		require.Equal(t, 1, on(s, "b", "n1"), "a batch job may run on until the deadline")
		require.NotNil(t, s.Node("n1").DrainStrategy)
		c.until("drained", func(s *store.Snapshot) bool { return s.Node("n1").DrainStrategy == nil })
		s = c.store.Snapshot()
		require.Equal(t, "complete", s.Node("n1").LastDrain.Status)
		require.Equal(t, drover.NodeIneligible, s.Node("n1").SchedulingEligibility)
		c.until("batch moved", func(s *store.Snapshot) bool { return on(s, "b", "n2") == 1 })
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
