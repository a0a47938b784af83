package environment

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
)

func TestTemplate(t *testing.T) {
	t.Parallel()
	env := Canonicalize(execution.Environment{
		ID: "42", Image: "host", PoolSize: 3, CPU: 150, MemoryMaxMB: 142, Network: true, ExposedPorts: []uint16{42, 1337},
	})
	kept, err := ToJob(env, Options{})
	require.NoError(t, err)
	job := Template(env, kept)
	require.Equal(t, "template-42", job.ID)
	require.Equal(t, drover.JobTypeBatch, job.Type)
	require.Len(t, job.TaskGroups, 2)

	back, err := FromTemplate(job)
	require.NoError(t, err)
	back.Driver = env.Driver
	require.Empty(t, cmp.Diff(env, Canonicalize(back)))

	closed := env
	closed.Network, closed.ExposedPorts = false, nil
	job = Template(closed, kept)
	require.Equal(t, "none", job.TaskGroups[0].Tasks[0].Config["network_mode"])
	require.Empty(t, job.TaskGroups[0].Networks)

	for _, id := range []string{"template-", "template-x", "template--1", "42", "template-99999999999"} {
		job.ID = id
		_, err := FromTemplate(job)
		require.Equal(t, drover.NotFound, drover.CodeOf(err), id)
	}
}
