package fsm

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/deepcopy"
)

// rollout is a bench with job "j" and a deployment "d" of its group.
func rollout(t *testing.T, s drover.DeploymentState, status string) (*bench, *drover.Job) {
	t.Helper()
	b := setup(t)
	b.do(node("n1"))
	j := b.do(register(job("j", "service", 2))).(*drover.Job)
	b.do(&command.UpsertDeployment{Time: 1, Deployment: &drover.Deployment{
		ID: "d", Namespace: "default", JobID: "j", JobVersion: j.Version, JobCreateIndex: j.CreateIndex, Status: status,
		StatusDescription: "Deployment is running but requires manual promotion",
		TaskGroups:        map[string]*drover.DeploymentState{"g": &s},
	}})
	return b, j
}

func (b *bench) state() *drover.DeploymentState { return b.now().Deployment("d").TaskGroups["g"] }

func member(id string, canary bool) *drover.Allocation {
	a := placed(id, "j")
	a.DeploymentID = "d"
	if canary {
		a.DeploymentStatus = &drover.AllocDeploymentStatus{Canary: true}
	}
	return a
}

// The progress deadline begins with the first placement, not before: a job may have to wait for capacity.
func TestProgressDeadlineBeginsWithTheFirstPlacement(t *testing.T) {
	t.Parallel()
	b, j := rollout(t, drover.DeploymentState{ProgressDeadline: time.Minute, DesiredTotal: 2}, drover.DeploymentRunning)
	require.True(t, b.state().RequireProgressBy.IsZero())
	p := plan(j, member("a", false))
	p.Time = int64(time.Hour)
	b.do(p)
	first := time.Unix(0, int64(time.Hour)).Add(time.Minute)
	require.True(t, first.Equal(b.state().RequireProgressBy))
	p = plan(j, member("b", false))
	p.Time = int64(2 * time.Hour)
	b.do(p)
	require.True(t, first.Equal(b.state().RequireProgressBy), "a placement is no progress")
}

// The time of a pause does not count.
func TestResumingRenewsTheProgressDeadline(t *testing.T) {
	t.Parallel()
	b, j := rollout(t, drover.DeploymentState{ProgressDeadline: time.Minute, DesiredTotal: 2}, drover.DeploymentRunning)
	b.do(plan(j, member("a", false)))
	to := func(status string, at time.Duration) {
		b.do(&command.UpdateDeploymentStatus{Time: int64(at), Update: &drover.DeploymentStatusUpdate{DeploymentID: "d", Status: status}})
	}
	to(drover.DeploymentPaused, time.Second)
	before := b.state().RequireProgressBy
	to(drover.DeploymentRunning, time.Hour)
	require.True(t, b.state().RequireProgressBy.Equal(time.Unix(0, int64(time.Hour)).Add(time.Minute)))
	require.True(t, before.Before(b.state().RequireProgressBy))
	to(drover.DeploymentRunning, 2*time.Hour)
	require.True(t, b.state().RequireProgressBy.Equal(time.Unix(0, int64(time.Hour)).Add(time.Minute)), "it was not paused")
}

func TestPromotion(t *testing.T) {
	t.Parallel()
	b, j := rollout(t, drover.DeploymentState{ProgressDeadline: time.Minute, DesiredTotal: 2, DesiredCanaries: 1}, drover.DeploymentRunning)
	d := deepcopy.Of(b.now().Deployment("d"))
	d.TaskGroups["h"] = &drover.DeploymentState{DesiredTotal: 1}
	b.do(&command.UpsertDeployment{Time: 1, Deployment: d})
	b.do(plan(j, member("a", true)))
	promote := &command.PromoteDeployment{DeploymentID: "d", Time: int64(time.Hour)}
	_, err := b.try(promote)
	require.EqualError(t, err, `Task group "g" has 0/1 healthy allocations`)
	say := func(status string, healthy *bool) {
		u := update("a", status)
		u.Nodes[0].Updates[0].DeploymentStatus = &drover.AllocDeploymentStatus{Healthy: healthy, Timestamp: time.Unix(0, 9)}
		b.do(u)
	}
	say("running", new(true))
	b.do(promote)
	require.True(t, b.state().Promoted)
	require.True(t, b.now().Deployment("d").TaskGroups["h"].Promoted, "all groups are promoted, as on Nomad")
	require.True(t, b.state().RequireProgressBy.Equal(time.Unix(0, int64(time.Hour)).Add(time.Minute)), "waiting for it does not count")
	require.Equal(t, "Deployment is running", b.now().Deployment("d").StatusDescription)
	require.False(t, b.now().Allocation("a").DeploymentStatus.Canary)
}

// A canary that failed after it was healthy is not one to promote.
func TestAFailedCanaryIsNotPromoted(t *testing.T) {
	t.Parallel()
	b, j := rollout(t, drover.DeploymentState{DesiredTotal: 2, DesiredCanaries: 1}, drover.DeploymentRunning)
	b.do(plan(j, member("a", true)))
	u := update("a", "running")
	u.Nodes[0].Updates[0].DeploymentStatus = &drover.AllocDeploymentStatus{Healthy: new(true), Timestamp: time.Unix(0, 9)}
	b.do(u)
	b.do(update("a", "failed"))
	require.Equal(t, 1, b.state().HealthyAllocs, "what was found stays")
	_, err := b.try(&command.PromoteDeployment{DeploymentID: "d"})
	require.EqualError(t, err, `Task group "g" has 0/1 healthy allocations`)
}

// A plan that replaces a drained canary was made before the promotion, and is committed after it: what it places is no canary. Found by
// internal/sim/rollouts.
func TestACanaryThatComesAfterThePromotionIsNone(t *testing.T) {
	t.Parallel()
	for version, want := range map[int]bool{promotesLate - 1: true, promotesLate: false} {
		b, j := rollout(t, drover.DeploymentState{DesiredTotal: 2, DesiredCanaries: 1}, drover.DeploymentRunning)
		b.do(&command.RaiseVersion{Version: version})
		b.do(plan(j, member("a", true)))
		b.do(&command.SetAllocHealth{DeploymentID: "d", Healthy: []string{"a"}, Time: 3})
		b.do(&command.PromoteDeployment{DeploymentID: "d"})
		b.do(plan(j, member("b", true)))
		require.Equal(t, want, b.now().Allocation("b").DeploymentStatus.Canary, "version %d", version)
	}
}

// Health may change in both directions by hand, and the counters follow.
func TestCountersFollowHealthBothWays(t *testing.T) {
	t.Parallel()
	b, j := rollout(t, drover.DeploymentState{DesiredTotal: 2}, drover.DeploymentRunning)
	b.do(plan(j, member("a", false)))
	b.do(&command.SetAllocHealth{DeploymentID: "d", Healthy: []string{"a"}, Time: 3})
	require.Equal(t, []int{1, 0}, []int{b.state().HealthyAllocs, b.state().UnhealthyAllocs})
	b.do(&command.SetAllocHealth{DeploymentID: "d", Unhealthy: []string{"a"}, Time: 4})
	require.Equal(t, []int{0, 1}, []int{b.state().HealthyAllocs, b.state().UnhealthyAllocs})
}

// An allocation whose node could only say that it failed is unhealthy, so that the deployment does not wait for more.
func TestWhatFailedWithoutHealthIsUnhealthy(t *testing.T) {
	t.Parallel()
	b, j := rollout(t, drover.DeploymentState{DesiredTotal: 2}, drover.DeploymentRunning)
	b.do(plan(j, member("a", false)))
	b.do(update("a", "failed"))
	require.False(t, *b.now().Allocation("a").DeploymentStatus.Healthy)
	require.Equal(t, 1, b.state().UnhealthyAllocs)
}

// An allocation that joins another deployment leaves its health behind.
func TestAnUpdateInPlaceForgetsHealth(t *testing.T) {
	t.Parallel()
	b, j := rollout(t, drover.DeploymentState{DesiredTotal: 2}, drover.DeploymentRunning)
	b.do(plan(j, member("a", false)))
	b.do(&command.SetAllocHealth{DeploymentID: "d", Healthy: []string{"a"}, Time: 3})
	d := deepcopy.Of(b.now().Deployment("d"))
	d.ID, d.TaskGroups["g"] = "d2", &drover.DeploymentState{DesiredTotal: 2}
	b.do(&command.UpsertDeployment{Deployment: d, Time: 4})
	a := member("a", false)
	a.DeploymentID = "d2"
	b.do(plan(j, a))
	require.Nil(t, b.now().Allocation("a").DeploymentStatus)
	require.Equal(t, 1, b.now().Deployment("d2").TaskGroups["g"].PlacedAllocs)
}

// What a node said before it knew of the allocation's new deployment does not count in that.
func TestHealthOfAnEarlierDeploymentDoesNotCount(t *testing.T) {
	t.Parallel()
	b, j := rollout(t, drover.DeploymentState{DesiredTotal: 2}, drover.DeploymentRunning)
	b.do(plan(j, member("a", false)))
	for _, c := range []struct {
		deployment string
		counts     int
	}{{"earlier", 0}, {"d", 1}} {
		u := update("a", "running")
		u.Nodes[0].Updates[0].DeploymentID = c.deployment
		u.Nodes[0].Updates[0].DeploymentStatus = &drover.AllocDeploymentStatus{Healthy: new(false), Timestamp: time.Unix(0, 9)}
		b.do(u)
		require.Equal(t, c.counts, b.state().UnhealthyAllocs)
	}
}

// A plan may place an allocation of an earlier version than its job's: the one that serves while canaries wait.
func TestAPlanPlacesAnEarlierVersion(t *testing.T) {
	t.Parallel()
	b, v0 := rollout(t, drover.DeploymentState{DesiredTotal: 2}, drover.DeploymentRunning)
	next := job("j", "service", 2)
	next.Priority = 60
	v1 := b.do(register(next)).(*drover.Job)
	old, fresh := member("a", false), placed("b", "j")
	old.Job, fresh.Job = v0, v1
	p := &drover.Plan{Job: v1, NodeAllocation: map[string][]*drover.Allocation{"n1": {old, fresh}}}
	c := command.Accept(p, &drover.PlanResult{NodeAllocation: p.NodeAllocation})
	b.do(&command.ApplyPlans{Time: 5, Plans: []command.PlanCommit{c}})
	require.EqualValues(t, 0, b.now().Allocation("a").Version())
	require.Same(t, b.now().JobVersion("default", "j", 0), b.now().Allocation("a").Job)
	require.EqualValues(t, 1, b.now().Allocation("b").Version())
}

// Another count is as proven as the one before it.
func TestScalingKeepsStability(t *testing.T) {
	t.Parallel()
	b, _ := rollout(t, drover.DeploymentState{}, drover.DeploymentRunning)
	b.do(&command.SetJobStability{Namespace: "default", ID: "j", Version: 0, Stable: true})
	scaled := register(job("j", "service", 5))
	scaled.Scaling = &command.ScalingRecord{Group: "g"}
	require.True(t, b.do(scaled).(*drover.Job).Stable)
	require.True(t, b.now().JobVersion("default", "j", 1).Stable)
	require.False(t, b.do(register(job("j", "service", 6))).(*drover.Job).Stable)
}

// A blocked evaluation that is taken back says nothing of what is queued any more.
func TestACanceledEvaluationQueuesNothing(t *testing.T) {
	t.Parallel()
	b, _ := rollout(t, drover.DeploymentState{}, drover.DeploymentRunning)
	say := func(id, status string, n int) {
		e := eval(id, "j", status)
		e.QueuedAllocations = map[string]int{"g": n}
		b.do(&command.UpdateEvals{Evals: []*drover.Evaluation{e}})
	}
	say("blocked", drover.EvalBlocked, 2)
	say("next", drover.EvalComplete, 0)
	say("blocked", drover.EvalCanceled, 2)
	require.Equal(t, 0, b.now().JobSummary("default", "j").Summary["g"].Queued)
}
