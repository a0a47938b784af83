package progress

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
)

func alloc(health *bool, at time.Time, canary bool) *drover.Allocation {
	return &drover.Allocation{
		ID: "a", DeploymentID: "d", TaskGroup: "g", ModifyTime: at.UnixNano(),
		DeploymentStatus: &drover.AllocDeploymentStatus{Healthy: health, Timestamp: at, Canary: canary},
	}
}

// TestAnAllocationIsCountedOnce: as it joins, and at each change of its health; what was there before stays as it was.
func TestAnAllocationIsCountedOnce(t *testing.T) {
	t.Parallel()
	at := time.Unix(100, 0).UTC()
	before := &drover.Deployment{ID: "d", TaskGroups: map[string]*drover.DeploymentState{"g": {ProgressDeadline: time.Minute}}}
	placed := alloc(nil, at, true)
	require.True(t, Counts(nil, placed))
	d := Counted(before, nil, placed)
	require.Equal(t, drover.DeploymentState{
		ProgressDeadline: time.Minute, PlacedAllocs: 1, PlacedCanaries: []string{"a"}, RequireProgressBy: at.Add(time.Minute),
	}, *d.TaskGroups["g"])
	require.Zero(t, before.TaskGroups["g"].PlacedAllocs)

	require.False(t, Counts(placed, placed))
	good := alloc(new(true), at.Add(time.Second), true)
	require.True(t, Counts(placed, good))
	d = Counted(d, placed, good)
	require.Equal(t, 1, d.TaskGroups["g"].HealthyAllocs)
	require.Equal(t, at.Add(time.Minute+time.Second), d.TaskGroups["g"].RequireProgressBy, "there was progress")
	bad := alloc(new(false), at.Add(time.Hour), true)
	d = Counted(d, good, bad)
	require.Equal(t, []int{0, 1}, []int{d.TaskGroups["g"].HealthyAllocs, d.TaskGroups["g"].UnhealthyAllocs})
	require.Equal(t, at.Add(time.Minute+time.Second), d.TaskGroups["g"].RequireProgressBy, "that was none")

	require.Nil(t, Counted(nil, nil, placed), "it is forgotten already")
	require.Nil(t, Counted(&drover.Deployment{}, nil, placed))
}
