package leader_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/leader"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/tenancy"
)

// limit makes the quota q, which bounds CPU (MHz) of the namespaces default and team together.
func (c *cluster) limit(cpu int) {
	c.t.Helper()
	ctx := context.Background()
	_, err := c.intake.UpsertQuota(ctx, &tenancy.QuotaSpec{Name: "q", Limits: []*tenancy.QuotaLimit{{
		Region: "global", RegionLimit: &tenancy.QuotaResources{CPU: new(cpu)},
	}}})
	require.NoError(c.t, err)
	for _, name := range []string{"default", "team"} {
		_, err = c.intake.UpsertNamespace(ctx, &tenancy.Namespace{Name: name, Quota: "q"})
		require.NoError(c.t, err)
	}
}

// used is what is used of the quota q, in MHz.
func used(s *store.Snapshot) int64 { return s.QuotaUsed("q").Total.CPU }

// Jobs of several namespaces that share a quota run a few at a time, never more than the quota has, until all are done. Nobody
// wakes them but the quota: the nodes have room all the time.
func TestAQuotaIsSharedAndNeverExceeded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, leader.Config{Schedulers: 4})
		c.limit(350)
		for i := range 4 {
			c.agent(testNode(fmt.Sprintf("n%d", i), 10_000), true)
		}
		done := make(chan struct{})
		go func() { // ends when all jobs are dead
			defer close(done)
			c.until("all dead", func(s *store.Snapshot) bool {
				require.LessOrEqual(t, used(s), int64(350))
				for i := range 20 {
					j := s.Job([]string{"default", "team"}[i%2], fmt.Sprintf("b%d", i))
					if j == nil || j.Status != drover.JobStatusDead {
						return false
					}
				}
				return true
			})
		}()
		for i := range 20 {
			j := testJob(fmt.Sprintf("b%d", i), drover.JobTypeBatch, 2)
			j.Namespace = []string{"default", "team"}[i%2]
			c.register(j)
		}
		<-done
		require.Zero(t, used(c.store.Snapshot()))
	})
}

// What waits for a quota says so, and runs once the limit is raised, the namespace leaves the quota, or others stop.
func TestAQuotaIsWaitedFor(t *testing.T) {
	for name, open := range map[string]func(c *cluster){
		"the limit is raised": func(c *cluster) { c.limit(200) },
		"the namespace leaves": func(c *cluster) {
			_, err := c.intake.UpsertNamespace(context.Background(), &tenancy.Namespace{Name: "default"})
			require.NoError(c.t, err)
		},
		"another one stops": func(c *cluster) {
			_, err := c.intake.DeregisterJob(context.Background(), drover.DeregisterRequest{Namespace: "team", ID: "first"})
			require.NoError(c.t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				c := newCluster(t, leader.Config{})
				c.limit(150)
				c.agent(testNode("n1", 10_000), false)
				first := testJob("first", drover.JobTypeService, 1)
				first.Namespace = "team"
				c.register(first)
				c.until("the first runs", func(s *store.Snapshot) bool { return used(s) == 100 })
				o := c.register(testJob("second", drover.JobTypeService, 1))
				c.until("the second is evaluated", func(s *store.Snapshot) bool { return s.Evaluation(o.EvalID).Terminal() })
				synctest.Wait()
				s := c.store.Snapshot()
				e := s.Evaluation(o.EvalID)
				require.Equal(t, "q", e.QuotaLimitReached)
				require.Equal(t, []string{"cpu exhausted (100 needed > 50 left of 150)"}, e.FailedTGAllocs["g"].QuotaExhausted)
				var waiting []string
				for e := range s.EvaluationsByJob("default", "second") {
					if e.Status == drover.EvalBlocked {
						waiting = append(waiting, e.QuotaLimitReached)
					}
				}
				require.Equal(t, []string{"q"}, waiting)
				require.Empty(t, c.allocs(s, "second", wantedPending))

				open(c)
				c.until("the second runs", func(s *store.Snapshot) bool { return len(c.allocs(s, "second", isRunning)) == 1 })
			})
		})
	}
}

// atOnce has a job updated without a deployment.
func atOnce(j *drover.Job) *drover.Job {
	j.Update = &drover.UpdateStrategy{MaxParallel: new(0)}
	return j
}

// An update of a job that uses its whole quota replaces one allocation after the other: the old one ends first.
func TestAnUpdateUnderAFullQuotaGoesOn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, leader.Config{})
		c.limit(300)
		c.agent(testNode("n1", 10_000), false)
		c.register(atOnce(testJob("s", drover.JobTypeService, 3)))
		c.until("it runs", func(s *store.Snapshot) bool { return len(c.allocs(s, "s", isRunning)) == 3 })
		next := atOnce(testJob("s", drover.JobTypeService, 3))
		next.TaskGroups[0].Tasks[0].Env = map[string]string{"a": "b"}
		c.register(next)
		c.until("the new version runs", func(s *store.Snapshot) bool {
			require.LessOrEqual(t, used(s), int64(300))
			return len(c.allocs(s, "s", func(a *drover.Allocation) bool { return isRunning(a) && a.Version() == 1 })) == 3
		})
	})
}

// A system job gets as many nodes as its quota has room for, and the others when there is more.
func TestASystemJobUnderAQuota(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, leader.Config{})
		c.limit(250)
		for i := range 4 {
			c.agent(testNode(fmt.Sprintf("n%d", i), 10_000), false)
		}
		o := c.register(testJob("s", drover.JobTypeSystem, 1))
		c.until("two run", func(s *store.Snapshot) bool { return len(c.allocs(s, "s", isRunning)) == 2 })
		synctest.Wait()
		e := c.store.Snapshot().Evaluation(o.EvalID)
		require.Equal(t, "q", e.QuotaLimitReached)
		require.Equal(t, []string{"cpu exhausted (100 needed > 50 left of 250)"}, e.FailedTGAllocs["g"].QuotaExhausted)
		require.Equal(t, int64(200), used(c.store.Snapshot()))
		c.limit(400)
		c.until("all run", func(s *store.Snapshot) bool { return len(c.allocs(s, "s", isRunning)) == 4 })
	})
}

// A job of which one group waits for its quota and another one for a node is placed when either comes.
func TestAGroupForEachReason(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, leader.Config{})
		c.limit(1000)
		c.agent(testNode("n1", 500), false)
		j := atOnce(testJob("s", drover.JobTypeService, 1))
		j.TaskGroups[0].Tasks[0].Resources.CPU = 2000 // beyond the quota
		other := *j.TaskGroups[0]
		other.Name, other.Tasks = "h", []*drover.Task{{Name: "t", Driver: "fake", Resources: &drover.Resources{CPU: 800, MemoryMB: 10}}}
		j.TaskGroups = append(j.TaskGroups, &other)
		c.register(j)
		synctest.Wait()
		require.Empty(t, c.allocs(c.store.Snapshot(), "s", wantedPending))
		c.agent(testNode("n2", 900), false)
		c.until("the one runs", func(s *store.Snapshot) bool { return len(c.allocs(s, "s", isRunning)) == 1 })
		c.agent(testNode("n3", 2000), false)
		synctest.Wait()
		c.limit(2800)
		c.until("both run", func(s *store.Snapshot) bool { return len(c.allocs(s, "s", isRunning)) == 2 })
	})
}
