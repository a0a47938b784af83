package leader

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/fsm"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/control/trigger"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/id"
)

// A deployment whose job is gone, or has a newer version, is the scheduler's to end: its passed deadline must not keep
// the watcher awake until then.
func TestAPassedDeadlineOfAnOlderVersionIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	m := trigger.Maker{IDs: id.Random{}, Now: now.UnixNano()}
	d := &drover.Deployment{
		ID: "d", Namespace: "default", JobID: "gone", Status: drover.DeploymentRunning,
		TaskGroups: map[string]*drover.DeploymentState{
			"late": {DesiredTotal: 1, ProgressDeadline: time.Minute, RequireProgressBy: now.Add(-time.Second)},
		},
	}
	var watched Rollouts
	c, wait := watched.Step(store.New().Snapshot(), d, now, m)
	require.Nil(t, c)
	require.Equal(t, time.Hour, wait)
	d.TaskGroups["soon"] = &drover.DeploymentState{DesiredTotal: 1, ProgressDeadline: time.Minute, RequireProgressBy: now.Add(time.Second)}
	_, wait = watched.Step(store.New().Snapshot(), d, now, m)
	require.Equal(t, time.Second, wait)
}

// verdicts is a state with job "j", in two versions of which the older is stable, and a deployment of the newer.
type verdicts struct {
	t     *testing.T
	store *store.Store
	fsm   *fsm.FSM
	index uint64
}

func newVerdicts(t *testing.T, attempts int, s drover.DeploymentState) *verdicts {
	st := store.New()
	v := &verdicts{t: t, store: st, fsm: fsm.New(st, nil)}
	for i, count := range []int{1, 2} {
		j := &drover.Job{ID: "j", Namespace: "default", Type: drover.JobTypeService, TaskGroups: []*drover.TaskGroup{{
			Name: "g", Count: &count, Tasks: []*drover.Task{{Name: "t", Driver: "fake"}},
			ReschedulePolicy: &drover.ReschedulePolicy{
				Unlimited: new(attempts < 0), Attempts: new(max(attempts, 0)), Interval: new(time.Hour), Delay: new(time.Minute),
			},
		}}}
		v.do(&command.RegisterJob{Job: j, Time: int64(i)})
	}
	v.do(&command.SetJobStability{Namespace: "default", ID: "j", Version: 0, Stable: true})
	v.do(&command.UpsertDeployment{Time: 1, Deployment: &drover.Deployment{
		ID: "d", Namespace: "default", JobID: "j", JobVersion: 1, JobCreateIndex: 1, Status: drover.DeploymentRunning,
		TaskGroups: map[string]*drover.DeploymentState{"g": &s},
	}})
	return v
}

func (v *verdicts) do(c command.Command) {
	data, err := command.Encode(c)
	require.NoError(v.t, err)
	v.index++
	_, err = v.fsm.Apply(v.index, data)
	require.NoError(v.t, err)
}

// fail places an allocation that fails.
func (v *verdicts) fail(id string) {
	v.do(&command.ApplyPlans{Time: 2, Plans: []command.PlanCommit{{
		Job: v.store.Snapshot().Job("default", "j"), Placed: []*drover.Allocation{{
			ID: id, Namespace: "default", JobID: "j", TaskGroup: "g", Name: "j.g[0]", NodeID: "n", DeploymentID: "d",
		}},
	}}})
	v.do(&command.UpdateAllocs{Time: 3, Nodes: []command.NodeUpdates{{NodeID: "n", Updates: []exchange.AllocUpdate{{
		ID: id, ClientStatus: drover.AllocClientFailed, TaskStates: map[string]*drover.TaskState{"t": {
			State: "dead", Failed: true,
			FinishedAt: time.Unix(0, 3),
		}},
	}}}}})
}

// step returns how the deployment ends now, "" if it does not, and when it is looked at again.
func (v *verdicts) step(now time.Time) (why string, due time.Duration, reverts bool) {
	var watched Rollouts
	s := v.store.Snapshot()
	c, due := watched.Step(s, s.Deployment("d"), now, trigger.Maker{IDs: id.Random{}, Now: now.UnixNano()})
	if u, ok := c.(*command.UpdateDeploymentStatus); ok {
		return u.Update.StatusDescription, due, u.Job != nil
	}
	return "", due, false
}

func TestVerdicts(t *testing.T) {
	t.Parallel()
	const soon = time.Second
	for _, c := range []struct {
		name     string
		attempts int // -1 = unlimited
		state    drover.DeploymentState
		fails    bool
		after    time.Duration
		why      string
		reverts  bool
		due      time.Duration
	}{
		{
			"another attempt is left", -1,
			drover.DeploymentState{DesiredTotal: 2, ProgressDeadline: time.Minute},
			true, soon, "", false,
			time.Minute - soon + 2,
		},
		{
			"none is left", 0,
			drover.DeploymentState{DesiredTotal: 2, ProgressDeadline: time.Minute},
			true, soon,
			"Failed due to unhealthy allocations", false, time.Minute - soon + 2,
		},
		{
			"none is left, and back", 0,
			drover.DeploymentState{DesiredTotal: 2, ProgressDeadline: time.Minute, AutoRevert: true},
			true, soon,
			"Failed due to unhealthy allocations - rolling back to job version 0", true, time.Minute - soon + 2,
		},
		{"no deadline", -1, drover.DeploymentState{DesiredTotal: 2}, true, soon, "Failed due to unhealthy allocations", false, time.Hour},
		{
			"the deadline passed", -1,
			drover.DeploymentState{DesiredTotal: 2, ProgressDeadline: time.Minute},
			true, time.Hour,
			"Failed due to progress deadline", false, time.Hour,
		},
		{
			"nothing was placed yet", -1,
			drover.DeploymentState{DesiredTotal: 2, ProgressDeadline: time.Minute},
			false, 100 * time.Hour, "",
			false, time.Hour,
		},
		{
			"canaries wait for a person", -1,
			drover.DeploymentState{
				DesiredTotal: 2, DesiredCanaries: 1, HealthyAllocs: 1, ProgressDeadline: time.Minute,
				RequireProgressBy: time.Unix(9, 0),
			},
			false, time.Hour, "", false, time.Hour,
		},
	} {
		v := newVerdicts(t, c.attempts, c.state)
		if c.fails {
			v.fail("a")
		}
		why, due, reverts := v.step(time.Unix(0, 0).Add(c.after))
		require.Equal(t, c.why, why, c.name)
		require.Equal(t, c.reverts, reverts, c.name)
		require.Equal(t, c.due, due, c.name)
	}
}

// What is proposed need not touch the deployment, so its deadline has to be waited for beside it.
func TestTheDeadlineIsWaitedForWhateverIsProposed(t *testing.T) {
	t.Parallel()
	v := newVerdicts(t, -1, drover.DeploymentState{DesiredTotal: 2, ProgressDeadline: time.Minute})
	v.fail("a")
	var watched Rollouts
	s := v.store.Snapshot()
	c, due := watched.Step(s, s.Deployment("d"), time.Unix(0, 2), trigger.Maker{IDs: id.Random{}})
	require.IsType(t, &command.UpdateEvals{}, c)
	require.Equal(t, time.Minute, due)
}

func TestAPauseStopsTheDeadline(t *testing.T) {
	t.Parallel()
	v := newVerdicts(t, -1, drover.DeploymentState{DesiredTotal: 2, ProgressDeadline: time.Minute})
	v.fail("a")
	v.do(&command.UpdateDeploymentStatus{Time: 4, Update: &drover.DeploymentStatusUpdate{DeploymentID: "d", Status: drover.DeploymentPaused}})
	why, due, _ := v.step(time.Unix(3600, 0))
	require.Empty(t, why)
	require.Equal(t, time.Hour, due)
	v.do(&command.UpdateDeploymentStatus{
		Time:   time.Unix(3600, 0).UnixNano(),
		Update: &drover.DeploymentStatusUpdate{DeploymentID: "d", Status: drover.DeploymentRunning},
	})
	why, due, _ = v.step(time.Unix(3600, 0))
	require.Empty(t, why)
	require.Equal(t, time.Minute, due)
}
