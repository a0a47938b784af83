package leader

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drover"
	"drover/internal/control/store"
	"drover/internal/control/trigger"
	"drover/internal/id"
)

// A deployment whose job is gone, or has a newer version, is the scheduler's to end: its passed deadline must not keep
// the watcher awake until then.
func TestAPassedDeadlineOfAnOlderVersionIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	m := trigger.Maker{IDs: id.Random{}, Now: now.UnixNano()}
	d := &drover.Deployment{ID: "d", Namespace: "default", JobID: "gone", Status: drover.DeploymentRunning, TaskGroups: map[string]*drover.DeploymentState{
		"late": {DesiredTotal: 1, ProgressDeadline: time.Minute, RequireProgressBy: now.Add(-time.Second)},
	}}
	var watched Rollouts
	c, wait := watched.Step(store.New().Snapshot(), d, now, m)
	require.Nil(t, c)
	require.Equal(t, time.Hour, wait)
	d.TaskGroups["soon"] = &drover.DeploymentState{DesiredTotal: 1, ProgressDeadline: time.Minute, RequireProgressBy: now.Add(time.Second)}
	_, wait = watched.Step(store.New().Snapshot(), d, now, m)
	require.Equal(t, time.Second, wait)
}
