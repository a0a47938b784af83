package allocrunner_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/deepcopy"
	"github.com/drover-project/drover/internal/node/driver"
)

// order gives the runner another version of its allocation.
func (b *bundle) order(edit func(*drover.Allocation)) {
	a := new(*b.alloc)
	a.AllocModifyIndex++
	a.Job = deepcopy.Of(a.Job)
	edit(a)
	b.alloc = a
	b.runner.Update(a)
	b.sleep(0)
}

func (b *bundle) healthy() string {
	s := b.last().DeploymentStatus
	switch {
	case s == nil || s.Healthy == nil:
		return "unknown"
	case *s.Healthy:
		return "healthy"
	}
	return "unhealthy"
}

// An allocation that was healthy in one deployment and is handed to the next one by an update in place has to be well
// anew. Without that the next deployment would wait for its health until it fails.
func TestHealthStartsOverInAnotherDeployment(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := newBundle(t, job("service", task("main", "", false)))
		b.alloc.DeploymentID = "d1"
		b.start()
		b.sleep(11 * time.Second)
		require.Equal(t, "healthy", b.healthy())
		b.order(func(a *drover.Allocation) {
			a.DeploymentID = "d2"
			a.Job.TaskGroups[0].Update.MinHealthyTime = new(3 * time.Second)
		})
		b.sleep(2 * time.Second)
		require.Equal(t, "unknown", b.healthy())
		b.sleep(2 * time.Second)
		require.Equal(t, "healthy", b.healthy(), "the new version's min_healthy_time counts")
		require.Equal(t, "start main", b.journal())
		b.restart()
		require.Equal(t, "healthy", b.healthy(), "an agent that starts again remembers it")
	})
}

func TestHealthStartsOverAcrossARestartOfTheAgent(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := newBundle(t, job("service", task("main", "", false)))
		b.alloc.DeploymentID = "d1"
		b.start()
		b.sleep(11 * time.Second)
		b.order(func(a *drover.Allocation) { a.DeploymentID = "d2" })
		b.restart()
		require.Equal(t, "unknown", b.healthy())
		b.sleep(11 * time.Second)
		require.Equal(t, "healthy", b.healthy())
	})
}

func TestHealthOutlivesTheFailure(t *testing.T) {
	bubble(t, func(t *testing.T) {
		main := task("main", "", false)
		main.RestartPolicy = &drover.RestartPolicy{Attempts: new(0), Mode: "fail"}
		b := newBundle(t, job("service", main))
		b.alloc.DeploymentID = "d"
		b.start()
		b.sleep(11 * time.Second)
		b.endTask("main", driver.Exit{Code: 1})
		require.Equal(t, "failed", b.last().ClientStatus)
		require.Equal(t, "healthy", b.healthy())
		require.NotContains(t, b.events("main"), drover.TaskAllocUnhealthy)
	})
}

func TestUnhealthyTellsEachTaskWhy(t *testing.T) {
	bubble(t, func(t *testing.T) {
		main, other := task("main", "", false), task("other", "", false)
		main.RestartPolicy = &drover.RestartPolicy{Attempts: new(0), Mode: "fail"}
		b := newBundle(t, job("service", main, other))
		b.alloc.DeploymentID = "d"
		b.start()
		b.endTask("main", driver.Exit{Code: 1})
		require.Equal(t, "unhealthy", b.healthy())
		for _, name := range []string{"main", "other"} {
			require.Contains(t, b.events(name), drover.TaskAllocUnhealthy)
		}
	})
}

func TestUnhealthyByTheDeadline(t *testing.T) {
	bubble(t, func(t *testing.T) {
		main := task("main", "", false)
		main.RestartPolicy = &drover.RestartPolicy{Attempts: new(1), Interval: new(time.Hour), Delay: new(time.Second), Mode: "delay"}
		b := newBundle(t, job("service", main))
		b.alloc.DeploymentID = "d"
		b.alloc.Job.TaskGroups[0].Update.HealthyDeadline = time.Minute
		b.start()
		b.endTask("main", driver.Exit{Code: 1})
		b.sleep(2 * time.Second)
		b.endTask("main", driver.Exit{Code: 1})
		b.sleep(59 * time.Second)
		require.Equal(t, "unhealthy", b.healthy())
		require.Equal(t, "pending", b.last().ClientStatus, "it waits for its next start")
		b.sleep(2 * time.Hour)
		require.Equal(t, "unhealthy", b.healthy(), "what was found stays")
	})
}

// Outside of a deployment health is judged by the migrate block.
func TestUnhealthyWithoutADeployment(t *testing.T) {
	bubble(t, func(t *testing.T) {
		main := task("main", "", false)
		main.RestartPolicy = &drover.RestartPolicy{Attempts: new(0), Mode: "fail"}
		b := newBundle(t, job("service", main)).start()
		b.sleep(5 * time.Second)
		b.endTask("main", driver.Exit{Code: 1})
		require.Equal(t, "unhealthy", b.healthy())
		require.NotContains(t, b.events("main"), drover.TaskAllocUnhealthy)
	})
}

func TestWhatIsStoppedIsNotUnhealthy(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for _, deployment := range []string{"", "d"} {
			b := newBundle(t, job("service", task("main", "", false)))
			b.alloc.DeploymentID = deployment
			b.start()
			b.sleep(5 * time.Second)
			b.stop()
			require.Equal(t, "complete", b.last().ClientStatus)
			require.Equal(t, "unknown", b.healthy())
		}
	})
}

// An update in place reaches the running task in all of its parts.
func TestUpdateInPlaceReachesTheRunningTask(t *testing.T) {
	bubble(t, func(t *testing.T) {
		main := task("main", "", false)
		main.RestartPolicy = &drover.RestartPolicy{Attempts: new(0), Mode: "fail"}
		b := newBundle(t, job("service", main)).start()
		b.order(func(a *drover.Allocation) {
			g := a.Job.TaskGroups[0]
			g.Tasks[0].RestartPolicy = &drover.RestartPolicy{Attempts: new(1), Interval: new(time.Hour), Delay: new(time.Second), Mode: "fail"}
			g.Tasks[0].KillTimeout = new(17 * time.Second)
			g.ShutdownDelay = new(7 * time.Second)
		})
		require.Equal(t, 7*time.Second, *b.runner.Group().ShutdownDelay)
		b.endTask("main", driver.Exit{Code: 1})
		b.sleep(2 * time.Second)
		require.Equal(t, "running", b.last().ClientStatus, "the new restart policy counts")
		b.stop()
		require.Equal(t, "running", b.last().ClientStatus, "the new shutdown_delay counts")
		b.sleep(8 * time.Second)
		require.Equal(t, "complete", b.last().ClientStatus)
		killing := ""
		for _, e := range b.last().TaskStates["main"].Events {
			if e.Type == drover.TaskKilling {
				killing = e.DisplayMessage
			}
		}
		require.True(t, strings.Contains(killing, "17s"), killing)
	})
}

func TestUpdateInPlaceMovesMaxRunDuration(t *testing.T) {
	bubble(t, func(t *testing.T) {
		j := job("batch", task("main", "", false))
		j.TaskGroups[0].MaxRunDuration = new(time.Minute)
		b := newBundle(t, j).start()
		b.order(func(a *drover.Allocation) { a.Job.TaskGroups[0].MaxRunDuration = new(3 * time.Minute) })
		b.sleep(2 * time.Minute)
		require.Equal(t, "running", b.last().ClientStatus)
		b.sleep(2 * time.Minute)
		require.Equal(t, "complete", b.last().ClientStatus)
	})
}
