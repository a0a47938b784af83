package scheduler

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/scheduler/draft"
)

// systemLife drives one system job through versions that work or fail, on nodes that come, drain and go, and plays the
// nodes and the leader's deployment loop.
type systemLife struct {
	w *world
	t *rapid.T
}

// TestSystemRolloutsKeepTheirPromises: at every moment no more nodes are without a healthy allocation because of an update
// than max_parallel. No failed version spreads, canaries are as many as were asked for, and in the end all is well.
func TestSystemRolloutsKeepTheirPromises(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := &systemLife{newWorld(), t}
		for i := range rapid.IntRange(1, 5).Draw(t, "nodes") {
			l.w.addNode(fmt.Sprintf("n%d", i), nil)
		}
		l.version("good", 1, 0)
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			l.step()
		}
		l.end()
	})
}

func (l *systemLife) step() {
	node := l.w.nodes[rapid.SampledFrom(l.w.order).Draw(l.t, "node")]
	switch rapid.SampledFrom([]string{"version", "report", "report", "eval", "eval", "drain", "down", "up", "wait"}).Draw(l.t, "step") {
	case "version":
		image := rapid.SampledFrom([]string{"good", "fine", "bad"}).Draw(l.t, "image")
		l.version(image, rapid.IntRange(1, 3).Draw(l.t, "parallel"), rapid.SampledFrom([]int{0, 0, 34, 100}).Draw(l.t, "canary"))
	case "report":
		l.report()
	case "eval":
		l.eval(rapid.SampledFrom([]string{drover.TriggerDeploymentWatcher, drover.TriggerAllocFailure, drover.TriggerNodeUpdate}).Draw(l.t, "by"))
	case "drain":
		l.w.addNode(node.ID, func(n *drover.Node) { n.SchedulingEligibility = drover.NodeIneligible })
		for _, a := range l.w.live("sys") {
			if a.NodeID == node.ID {
				l.w.change(a.ID, func(a *drover.Allocation) { a.DesiredTransition.Migrate = new(true) })
			}
		}
		l.eval(drover.TriggerNodeDrain)
	case "down":
		l.w.addNode(node.ID, func(n *drover.Node) { n.Status = drover.NodeStatusDown })
		l.eval(drover.TriggerNodeUpdate)
	case "up":
		l.w.addNode(node.ID, nil)
		l.eval(drover.TriggerNodeUpdate)
	case "wait":
		l.w.now = l.w.now.Add(time.Minute)
	}
}

func (l *systemLife) version(image string, parallel, canary int) {
	j := newJob("sys", drover.JobTypeSystem, 1)
	j.TaskGroups[0].Tasks[0].Config["image"] = image
	j.TaskGroups[0].Update = &drover.UpdateStrategy{
		MaxParallel: &parallel, Canary: canary, AutoPromote: canary > 0, MinHealthyTime: new(time.Second), ProgressDeadline: new(time.Minute),
	}
	l.w.putJob(j)
	l.eval(drover.TriggerJobRegister)
}

// eval schedules and checks the plan against what was before.
func (l *systemLife) eval(by string) {
	j := l.w.jobs["sys"]
	before := l.current()
	pending := 0
	for _, a := range l.w.live("sys") {
		if l.w.nodes[a.NodeID].Ready() && before != nil && a.DeploymentID == before.ID && !a.DeploymentStatus.Judged() {
			pending++
		}
	}
	out := l.w.evalFor("sys", by)
	updated := 0
	for _, stopped := range out.Plan.NodeUpdate {
		for _, a := range stopped {
			if a.DesiredDescription == draft.WhyUpdating {
				updated++
			}
		}
	}
	require.LessOrEqual(l.t, updated, max(0, *j.TaskGroups[0].Update.MaxParallel-pending), "updates at once")
	if before != nil && before.Status == drover.DeploymentFailed {
		require.Zero(l.t, updated, "a failed version spreads")
	}
	l.idle()
	canaries, hosts := 0, map[string]bool{}
	for _, a := range l.w.live("sys") {
		require.False(l.t, hosts[a.NodeID], "two on %s", a.NodeID)
		hosts[a.NodeID] = true
		if d := l.current(); d != nil && a.DeploymentID == d.ID && a.DeploymentStatus != nil && a.DeploymentStatus.Canary {
			canaries++
		}
	}
	if d := l.current(); d != nil {
		require.LessOrEqual(l.t, canaries, max(d.TaskGroups["g"].DesiredCanaries,
			(min(j.TaskGroups[0].Update.Canary, 100)*len(l.w.order)+99)/100))
		if d.Status == drover.DeploymentSuccessful {
			l.w.stabilize("sys", d.JobVersion)
		}
	}
}

// idle: what was just done is not done once more, however often somebody looks.
func (l *systemLife) idle() {
	e := &drover.Evaluation{ID: "again", Namespace: "default", JobID: "sys", TriggeredBy: drover.TriggerAllocFailure}
	plan := Schedule(Input{Eval: e, Snapshot: l.w, Now: l.w.now, Seed: 8}).Plan
	require.Empty(l.t, plan.NodeAllocation, "placed again")
	require.Empty(l.t, plan.NodeUpdate, "stopped again")
}

// current is the deployment of the job's version.
func (l *systemLife) current() *drover.Deployment {
	for _, d := range l.w.deployments {
		if d.JobVersion == l.w.jobs["sys"].Version {
			return d
		}
	}
	return nil
}

// report plays nodes and leader: what should run does, or fails and is unhealthy if its version is bad; a deployment with
// an unhealthy allocation fails, one with healthy canaries is promoted.
func (l *systemLife) report() {
	l.w.settle()
	for _, a := range l.w.live("sys") {
		n := l.w.nodes[a.NodeID]
		if n.Status != drover.NodeStatusReady || a.ClientStatus != drover.AllocClientRunning {
			continue
		}
		bad := strings.Contains(a.Job.TaskGroups[0].Tasks[0].Config["image"].(string), "bad")
		if a.DeploymentID != "" && !a.DeploymentStatus.Judged() {
			l.w.health(a.ID, !bad)
		}
		if bad {
			l.w.change(a.ID, func(a *drover.Allocation) { report(a, drover.AllocClientFailed, l.w.now) })
		}
	}
	d := l.current()
	if d == nil || !d.Active() {
		return
	}
	s := d.TaskGroups["g"]
	switch {
	case s.UnhealthyAllocs > 0:
		l.w.deploymentCommand("sys", "fail")
	case s.Unpromoted() && s.HealthyAllocs >= s.DesiredCanaries:
		l.w.deploymentCommand("sys", "promote")
		for _, a := range l.w.live("sys") {
			if a.DeploymentID == d.ID && a.DeploymentStatus != nil {
				l.w.change(a.ID, func(a *drover.Allocation) {
					a.DeploymentStatus = &drover.AllocDeploymentStatus{Healthy: a.DeploymentStatus.Healthy}
				})
			}
		}
	}
}

// end brings all nodes back, registers what works, and expects it everywhere.
func (l *systemLife) end() {
	for _, id := range l.w.order {
		l.w.addNode(id, nil)
	}
	l.version("last", 1, 0)
	for range 3 * len(l.w.order) {
		l.report()
		l.eval(drover.TriggerDeploymentWatcher)
	}
	require.Equal(l.t, drover.DeploymentSuccessful, l.current().Status)
	runs := map[string]uint64{}
	for _, a := range l.w.live("sys") {
		runs[a.NodeID] = a.Version()
	}
	require.Len(l.t, runs, len(l.w.order))
	for v := range maps.Values(runs) {
		require.Equal(l.t, l.w.jobs["sys"].Version, v)
	}
}
