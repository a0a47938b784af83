package nomad_test

import (
	"testing"

	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi/nomad"
)

func TestValidateAsksTheDrivers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *nomad.Config) {
		c.ValidateTask = func(task *drover.Task) (bool, error) {
			if task.Driver != "raw_exec" {
				return false, nil
			}
			if task.Config["command"] == nil {
				return true, drover.Errorf(drover.Invalid, "command: must be set")
			}
			return true, nil
		}
	})
	job := func(driver string, config map[string]any) *api.Job {
		g := api.NewTaskGroup("g", 1).AddTask(&api.Task{Name: "t", Driver: driver, Config: config})
		return api.NewBatchJob("j", "j", "global", 50).AddTaskGroup(g)
	}
	r, _, err := w.client.Jobs().Validate(job("raw_exec", map[string]any{"command": "x"}), nil)
	require.NoError(t, err)
	require.Empty(t, r.ValidationErrors)
	require.True(t, r.DriverConfigValidated)
	r, _, err = w.client.Jobs().Validate(job("raw_exec", nil), nil)
	require.NoError(t, err)
	require.Equal(t, []string{"job.group[g].task[t].Config.command: must be set"}, r.ValidationErrors)
	r, _, err = w.client.Jobs().Validate(job("docker", nil), nil)
	require.NoError(t, err)
	require.False(t, r.DriverConfigValidated)
}
