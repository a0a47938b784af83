package reconcile

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/constraint"
	"github.com/drover-project/drover/network"
)

func TestSameWork(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		edit func(*drover.Job, *drover.TaskGroup, *drover.Task)
		same bool
	}{
		"nothing":         {func(*drover.Job, *drover.TaskGroup, *drover.Task) {}, true},
		"count":           {func(_ *drover.Job, g *drover.TaskGroup, _ *drover.Task) { g.Count = new(9) }, true},
		"pool size":       {func(_ *drover.Job, g *drover.TaskGroup, _ *drover.Task) { g.Pool = &drover.WarmPool{Size: 3} }, true},
		"constraint":      {func(j *drover.Job, _ *drover.TaskGroup, _ *drover.Task) { j.Constraints = []*constraint.Constraint{{}} }, true},
		"task constraint": {func(_ *drover.Job, _ *drover.TaskGroup, t *drover.Task) { t.Constraints = []*constraint.Constraint{{}} }, true},
		"spread":          {func(_ *drover.Job, g *drover.TaskGroup, _ *drover.Task) { g.Spreads = []*constraint.Spread{{}} }, true},
		"restart policy":  {func(_ *drover.Job, g *drover.TaskGroup, _ *drover.Task) { g.RestartPolicy = &drover.RestartPolicy{} }, true},
		"reschedule policy": {func(_ *drover.Job, g *drover.TaskGroup, _ *drover.Task) {
			g.ReschedulePolicy = &drover.ReschedulePolicy{}
		}, true},
		"kill timeout":  {func(_ *drover.Job, _ *drover.TaskGroup, t *drover.Task) { t.KillTimeout = new(time.Minute) }, true},
		"priority":      {func(j *drover.Job, _ *drover.TaskGroup, _ *drover.Task) { j.Priority = 90 }, true},
		"empty for nil": {func(_ *drover.Job, _ *drover.TaskGroup, t *drover.Task) { t.Env, t.Meta = map[string]string{}, nil }, true},
		"float for int": {func(_ *drover.Job, _ *drover.TaskGroup, t *drover.Task) { t.Config["n"] = 3.0 }, true},
		"job meta":      {func(j *drover.Job, _ *drover.TaskGroup, _ *drover.Task) { j.Meta = map[string]string{"a": "b"} }, false},
		"group meta":    {func(_ *drover.Job, g *drover.TaskGroup, _ *drover.Task) { g.Meta = map[string]string{"a": "b"} }, false},
		"env":           {func(_ *drover.Job, _ *drover.TaskGroup, t *drover.Task) { t.Env = map[string]string{"a": "b"} }, false},
		"config":        {func(_ *drover.Job, _ *drover.TaskGroup, t *drover.Task) { t.Config["n"] = 4 }, false},
		"config list":   {func(_ *drover.Job, _ *drover.TaskGroup, t *drover.Task) { t.Config["args"] = []any{"a", "c"} }, false},
		"config type":   {func(_ *drover.Job, _ *drover.TaskGroup, t *drover.Task) { t.Config["n"] = "3" }, false},
		"driver":        {func(_ *drover.Job, _ *drover.TaskGroup, t *drover.Task) { t.Driver = "x" }, false},
		"memory":        {func(_ *drover.Job, _ *drover.TaskGroup, t *drover.Task) { t.Resources.MemoryMB = 9 }, false},
		"disk":          {func(_ *drover.Job, g *drover.TaskGroup, _ *drover.Task) { g.EphemeralDisk.SizeMB = 9 }, false},
		"port":          {func(_ *drover.Job, g *drover.TaskGroup, _ *drover.Task) { g.Networks = []*network.Resource{{}} }, false},
		"another task":  {func(_ *drover.Job, g *drover.TaskGroup, t *drover.Task) { g.Tasks = append(g.Tasks, new(*t)) }, false},
	} {
		build := func() *drover.Job {
			return &drover.Job{ID: "j", TaskGroups: []*drover.TaskGroup{{
				Name: "g", Count: new(1), EphemeralDisk: &drover.EphemeralDisk{SizeMB: 300},
				Tasks: []*drover.Task{{
					Name: "t", Driver: "fake", Resources: &drover.Resources{CPU: 500, MemoryMB: 256},
					Config: map[string]any{"n": 3, "args": []any{"a", "b"}, "ok": true},
				}},
			}}}
		}
		before, after := build(), build()
		c.edit(after, after.TaskGroups[0], after.TaskGroups[0].Tasks[0])
		require.Equal(t, c.same, sameWork(before, before.TaskGroups[0], after, after.TaskGroups[0]), name)
	}
}
