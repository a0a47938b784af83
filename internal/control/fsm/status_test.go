package fsm

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/exchange"
)

// deployment is one of the job's version 0.
func deployment(j *drover.Job, status string) *drover.Deployment {
	return &drover.Deployment{
		ID: "d-" + j.ID, Namespace: j.Namespace, JobID: j.ID, JobVersion: j.Version, JobCreateIndex: j.CreateIndex, Status: status,
		TaskGroups: map[string]*drover.DeploymentState{"g": {DesiredTotal: 1}},
	}
}

// A job's status is Nomad's for each type and each of its allocation, evaluation and deployment.
func TestJobStatus(t *testing.T) {
	t.Parallel()
	const none = ""
	for _, c := range []struct {
		kind                    string
		alloc, eval, deployment string
		want                    string
	}{
		{"service", none, drover.EvalPending, none, "pending"},
		{"service", none, drover.EvalBlocked, none, "pending"},
		{"service", none, drover.EvalBlocked, drover.DeploymentRunning, "running"},
		{"service", none, drover.EvalComplete, drover.DeploymentPaused, "running"},
		{"service", none, drover.EvalComplete, drover.DeploymentFailed, "dead"},
		{"service", none, drover.EvalComplete, none, "dead"},
		{"service", "running", drover.EvalBlocked, none, "running"},
		{"service", "failed", drover.EvalPending, drover.DeploymentSuccessful, "pending"},
		{"service", "failed", drover.EvalComplete, drover.DeploymentFailed, "dead"},
		{"service", "complete", drover.EvalComplete, drover.DeploymentSuccessful, "dead"},
		{"batch", none, drover.EvalBlocked, none, "pending"},
		{"batch", "complete", drover.EvalComplete, none, "dead"},
		{"sysbatch", "failed", drover.EvalComplete, none, "dead"},
		{"sysbatch", "running", drover.EvalComplete, none, "running"},
		{"system", "failed", drover.EvalComplete, drover.DeploymentFailed, "running"},
		{"system", none, drover.EvalComplete, none, "running"},
	} {
		t.Run(c.kind+" "+c.alloc+" "+c.eval+" "+c.deployment, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.do(node("n1"))
			j := b.do(register(job("j", c.kind, 1))).(*drover.Job)
			if c.deployment != none {
				b.do(&command.UpsertDeployment{Deployment: deployment(j, c.deployment)})
			}
			if c.alloc != none {
				b.do(plan(j, placed("a", "j")))
				b.do(update("a", c.alloc))
			}
			b.do(&command.UpdateEvals{Evals: []*drover.Evaluation{eval("e-j", "j", c.eval)}})
			require.Equal(t, c.want, b.now().Job("default", "j").Status)
		})
	}
}

func TestADeploymentsEndEndsTheJobsLife(t *testing.T) {
	t.Parallel()
	b := setup(t)
	j := b.do(register(job("j", "service", 1))).(*drover.Job)
	b.do(&command.UpsertDeployment{Deployment: deployment(j, drover.DeploymentRunning)})
	b.do(&command.UpdateEvals{Evals: []*drover.Evaluation{eval("e-j", "j", drover.EvalComplete)}})
	require.Equal(t, "running", b.now().Job("default", "j").Status)
	b.do(&command.UpdateDeploymentStatus{Update: &drover.DeploymentStatusUpdate{DeploymentID: "d-j", Status: drover.DeploymentFailed}})
	require.Equal(t, "dead", b.now().Job("default", "j").Status)
	b.do(&command.Reap{Evals: []string{"e-j"}, Deployments: []string{"d-j"}})
	require.Equal(t, "dead", b.now().Job("default", "j").Status, "to forget what it had does not revive a job")
}

func TestAStopIsAsStableAsWhatItStops(t *testing.T) {
	t.Parallel()
	for _, stable := range []bool{true, false} {
		b := setup(t)
		b.do(register(job("j", "service", 1)))
		b.do(&command.SetJobStability{Namespace: "default", ID: "j", Stable: stable})
		b.do(&command.DeregisterJob{Namespace: "default", ID: "j", Time: 3})
		require.Equal(t, uint64(1), b.now().Job("default", "j").Version)
		require.Equal(t, stable, b.now().Job("default", "j").Stable)
	}
}

// A plan may say anew how many allocations a deployment wants; what became of it since the plan was made stays.
func TestAPlanResizesADeployment(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.do(node("n1"))
	j := b.do(register(job("j", "system", 1))).(*drover.Job)
	d := deployment(j, drover.DeploymentRunning)
	p := plan(j, placed("a", "j"))
	p.Plans[0].Deployment, p.Plans[0].Placed[0].DeploymentID = d, d.ID
	b.do(p)
	late := *b.now().Deployment(d.ID)
	late.TaskGroups = map[string]*drover.DeploymentState{"g": {DesiredTotal: 2}}
	healthy := update("a", "running")
	healthy.Nodes[0].Updates[0].DeploymentStatus = &drover.AllocDeploymentStatus{Healthy: new(true)}
	b.do(healthy)
	b.do(&command.ApplyPlans{Plans: []command.PlanCommit{{Job: j, Deployment: &late}}})
	got := b.now().Deployment(d.ID)
	require.Equal(t, 2, got.TaskGroups["g"].DesiredTotal)
	require.Equal(t, 1, got.TaskGroups["g"].HealthyAllocs)
	require.Equal(t, 1, got.TaskGroups["g"].PlacedAllocs)
	require.Less(t, got.CreateIndex, got.ModifyIndex)
}

// What was evicted is told what took its place when that is made, and stays evicted.
func TestAnEvictedAllocationIsToldForWhom(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.do(node("n1"))
	low := b.do(register(job("low", "service", 1))).(*drover.Job)
	high := b.do(register(job("high", "service", 1))).(*drover.Job)
	b.do(plan(low, placed("a", "low")))
	b.do(&command.ApplyPlans{Plans: []command.PlanCommit{{
		Job:       high,
		Preempted: []command.PreemptedAlloc{{ID: "a", Description: "Preempted by job high"}},
	}}})
	b.do(update("a", "complete"))
	p := plan(high, placed("b", "high"))
	p.Plans[0].Preempted = []command.PreemptedAlloc{{ID: "a", By: "b", Description: "Preempted by alloc ID b"}}
	b.do(p)
	a := b.now().Allocation("a")
	require.Equal(t, []string{"evict", "b", "Preempted by alloc ID b"},
		[]string{a.DesiredStatus, a.PreemptedByAllocation, a.DesiredDescription})
	p.Plans[0].Placed, p.Plans[0].Preempted[0].By = nil, "c"
	b.do(p)
	require.Equal(t, "b", b.now().Allocation("a").PreemptedByAllocation)
}

// TestQuickEndsAreCounted: what a job's allocations do at once by themselves, over snapshot and restore, until somebody
// registers the job anew or two minutes have passed.
func TestQuickEndsAreCounted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.do(node("n1"))
	b.do(register(job("j", "service", 1)))
	end := func(id, status string, ran time.Duration, at int64) int {
		j := b.now().Job("default", "j")
		b.do(plan(j, placed(id, "j")))
		start := time.Unix(1_800_000_000, 0)
		b.do(&command.UpdateAllocs{Time: at, Nodes: []command.NodeUpdates{{NodeID: "n1", Updates: []exchange.AllocUpdate{{
			ID: id, ClientStatus: status, TaskStates: map[string]*drover.TaskState{"t": {
				State: "dead", StartedAt: start,
				FinishedAt: start.Add(ran),
			}},
		}}}}})
		return b.now().QuickEnds("default", "j").Count
	}
	second := int64(time.Second)
	require.Equal(t, 1, end("a", "failed", time.Millisecond, 1000*second))
	require.Equal(t, 2, end("b", "complete", 0, 1001*second), "a service is not to end")
	require.Equal(t, 2, end("c", "failed", time.Second, 1002*second), "it ran")
	require.Equal(t, 2, end("d", "running", 0, 1003*second))
	b.do(&command.StopAllocs{IDs: []string{"d"}, Time: 1004 * second})
	require.Equal(t, 3, end("e", "failed", 0, 1001*second))
	b.do(&command.UpdateAllocs{
		Time:  1004 * second,
		Nodes: []command.NodeUpdates{{NodeID: "n1", Updates: []exchange.AllocUpdate{{ID: "d", ClientStatus: "failed"}}}},
	})
	sameAfterRestore(t, b)
	require.Equal(t, drover.QuickEnds{Count: 3, Last: 1001 * second}, b.now().QuickEnds("default", "j"), "one that was stopped does not count")
	require.Equal(t, 1, end("f", "failed", 0, 2000*second), "those before are forgotten")
	b.do(register(job("j", "service", 1)))
	require.Zero(t, b.now().QuickEnds("default", "j"))
}
