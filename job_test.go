package drover

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/constraint"
	"github.com/drover-project/drover/internal/deepcopy"
	"github.com/drover-project/drover/internal/validation"
)

func sample() *Job {
	return &Job{ID: "web", TaskGroups: []*TaskGroup{{Name: "g", Tasks: []*Task{{
		Name: "t", Driver: "raw_exec",
		Config: map[string]any{"command": "/bin/true", "args": []any{"a", 1.0}},
	}}}}}
}

func TestCanonicalizeIsIdempotentAndValid(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{JobTypeService, JobTypeBatch, JobTypeSystem, JobTypeSysBatch} {
		j := sample()
		j.Type = kind
		j.Canonicalize()
		require.NoError(t, j.Validate(), kind)
		again := deepcopy.Of(j)
		again.Canonicalize()
		require.Empty(t, cmp.Diff(j, again), kind)
	}
}

func TestCanonicalizeDefaults(t *testing.T) {
	t.Parallel()
	j := sample()
	j.Canonicalize()
	g := j.TaskGroups[0]
	require.Equal(t, 1, *g.Count)
	require.Equal(t, 2, *g.RestartPolicy.Attempts)
	require.Equal(t, 30*time.Second, *g.ReschedulePolicy.Delay)
	require.True(t, *g.ReschedulePolicy.Unlimited)
	require.Equal(t, 5*time.Second, *g.Tasks[0].KillTimeout)
	require.Equal(t, 100, g.Tasks[0].Resources.CPU)
	require.Equal(t, 1, *g.Update.MaxParallel)
}

func TestExplicitZeroIsKept(t *testing.T) {
	t.Parallel()
	var j Job
	require.NoError(t, json.Unmarshal([]byte(`{"ID":"x","Type":"batch","TaskGroups":[{"Name":"g","Count":0,
		"RestartPolicy":{"Attempts":0},"Tasks":[{"Name":"t","Driver":"fake","KillTimeout":0}]}]}`), &j))
	j.Canonicalize()
	require.Equal(t, 0, *j.TaskGroups[0].Count)
	require.Equal(t, 0, *j.TaskGroups[0].RestartPolicy.Attempts)
	require.Equal(t, 15*time.Second, *j.TaskGroups[0].RestartPolicy.Delay)
	require.Equal(t, time.Duration(0), *j.TaskGroups[0].Tasks[0].KillTimeout)
}

// The oracle is the official client's own types: what we print is read by them without loss of what they know.
func TestJobIsReadByTheOfficialClient(t *testing.T) {
	t.Parallel()
	j := sample()
	j.Canonicalize()
	data, err := json.Marshal(j)
	require.NoError(t, err)
	var theirs api.Job
	require.NoError(t, json.Unmarshal(data, &theirs))
	require.Equal(t, "web", *theirs.ID)
	back, err := json.Marshal(&theirs)
	require.NoError(t, err)
	var again Job
	require.NoError(t, json.Unmarshal(back, &again))
	again.Canonicalize()
	require.Empty(t, cmp.Diff(j, &again))
}

func TestValidateReportsEverythingWithPaths(t *testing.T) {
	t.Parallel()
	j := sample()
	j.Type = "cron"
	j.Priority = 40_000
	j.TaskGroups[0].Count = new(-1)
	j.TaskGroups[0].Tasks[0].Driver = ""
	j.TaskGroups[0].Tasks[0].Artifacts = []*TaskArtifact{{GetterSource: "file:///x", RelativeDest: "../../etc"}}
	j.TaskGroups[0].Constraints = []*constraint.Constraint{{LTarget: "${attr.x}", Operand: "regexp", RTarget: "("}}
	j.Canonicalize()
	err := j.Validate()
	require.Equal(t, Invalid, CodeOf(err))
	for _, want := range []string{"job.Type", "job.Priority", "job.group[g].Count", "task[t].Driver", "RelativeDest", "regular expression"} {
		require.ErrorContains(t, err, want)
	}
}

func TestStaysInside(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]bool{"local/x": true, "/abs": true, "..": false, "local/../../x": false, "a/../b": true, "": true} {
		require.Equal(t, want, validation.StaysInside(path), path)
	}
}
