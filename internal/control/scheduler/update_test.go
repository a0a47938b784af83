package scheduler

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
)

// TestAProvenVersionIsNotHalted: a version that was rolled out begins from nothing once more when all of it was evicted.
// That this deployment fails, as there was no room for too long, does not end the version for good.
func TestAProvenVersionIsNotHalted(t *testing.T) {
	t.Parallel()
	for status, want := range map[string]int{drover.DeploymentSuccessful: 1, drover.DeploymentCancelled: 0} {
		w := newWorld()
		w.addNode("n", nil)
		j := newJob("web", drover.JobTypeService, 1)
		j.TaskGroups[0].Update = &drover.UpdateStrategy{MaxParallel: new(1)}
		w.putJob(j)
		for i, s := range []string{status, drover.DeploymentFailed} {
			id := fmt.Sprint("d", i)
			w.deployments[id] = &drover.Deployment{
				ID: id, Namespace: "default", JobID: "web", JobVersion: j.Version, JobCreateIndex: j.CreateIndex, Status: s,
				CreateIndex: uint64(i + 1), TaskGroups: map[string]*drover.DeploymentState{"g": {DesiredTotal: 1}},
			}
		}
		require.Len(t, placed(w.eval("web")), want, status)
	}
}

// TestALateDeploymentPlacesNothing: what fails is not replaced from the moment at which the leader fails the deployment, whether
// or not it has done so yet. One that is paused is not failed by time, and so goes on.
func TestALateDeploymentPlacesNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status string
		left   time.Duration // until the deadline
		want   int
	}{
		"in time":       {drover.DeploymentRunning, time.Millisecond, 1},
		"at the moment": {drover.DeploymentRunning, 0, 0},
		"late":          {drover.DeploymentRunning, -time.Millisecond, 0},
		"paused":        {drover.DeploymentPaused, -time.Millisecond, 1},
	} {
		w := newWorld()
		w.addNode("n", nil)
		j := newJob("web", drover.JobTypeService, 2)
		j.TaskGroups[0].Update = &drover.UpdateStrategy{MaxParallel: new(2)}
		j.TaskGroups[0].ReschedulePolicy = &drover.ReschedulePolicy{
			Delay: new(5 * time.Second), DelayFunction: "constant", Unlimited: new(true),
		}
		w.putJob(j)
		w.eval("web")
		w.settle()
		require.Len(t, w.deployments, 1, name)
		for _, d := range w.deployments {
			d.Status = c.status
			d.TaskGroups["g"].RequireProgressBy = w.now.Add(10 * time.Second)
		}
		failed := w.live("web")[0]
		w.change(failed.ID, func(a *drover.Allocation) {
			a.ClientStatus = drover.AllocClientFailed
			a.TaskStates = map[string]*drover.TaskState{"t": {State: drover.TaskStateDead, Failed: true, FinishedAt: w.now}}
			a.DeploymentStatus = &drover.AllocDeploymentStatus{Healthy: new(false), Timestamp: w.now}
		})
		w.now = w.now.Add(10*time.Second - c.left)
		require.Len(t, placed(w.evalFor("web", drover.TriggerRetryFailedAlloc)), c.want, name)
	}
}
