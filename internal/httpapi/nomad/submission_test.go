package nomad_test

import (
	"strings"
	"testing"

	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"
)

// What a job was made of is kept with each of its versions.
func TestClientJobSubmissions(t *testing.T) {
	t.Parallel()
	jobs := newCluster(t).client.Jobs()
	job := func(note string) *api.Job {
		j := api.NewBatchJob("texts", "texts", "global", 50)
		j.Meta = map[string]string{"note": note}
		task := api.NewTask("t", "raw_exec").SetConfig("command", "/bin/true")
		return j.AddTaskGroup(api.NewTaskGroup("g", 1).AddTask(task))
	}
	want := &api.JobSubmission{
		Source: "job \"texts\" {}", Format: "hcl2", VariableFlags: map[string]string{"a": "1"}, Variables: "b = 2",
	}
	_, _, err := jobs.RegisterOpts(job("zero"), &api.RegisterOptions{Submission: want}, nil)
	require.NoError(t, err)
	_, _, err = jobs.Register(job("one"), nil)
	require.NoError(t, err)
	large := &api.JobSubmission{Source: strings.Repeat("x", 1_000_001), Format: "json"}
	reg, _, err := jobs.RegisterOpts(job("two"), &api.RegisterOptions{Submission: large}, nil)
	require.NoError(t, err)
	require.Contains(t, reg.Warnings, "is not kept")

	got, _, err := jobs.Submission("texts", 0, nil)
	require.NoError(t, err)
	require.Equal(t, want, got)
	for version, why := range map[int]string{1: "it was registered without", 2: "it is too large", 9: "there is no such version"} {
		_, _, err = jobs.Submission("texts", version, nil)
		require.ErrorContains(t, err, "404", why)
	}
	_, _, err = jobs.Submission("texts", -1, nil)
	require.ErrorContains(t, err, "400")
	_, _, err = jobs.Deregister("texts", true, nil)
	require.NoError(t, err)
	_, _, err = jobs.Submission("texts", 0, nil)
	require.ErrorContains(t, err, "404")
}
