package drover

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/constraint"
	"github.com/drover-project/drover/network"
)

// Whatever ids people have at Nomad are taken: it refuses but empty ones, spaces and NUL.
func TestIdsThatAreNames(t *testing.T) {
	t.Parallel()
	for _, id := range []string{
		"web", "team/web", "web/dispatch-1700000000-abcdef12", "web/periodic-1700000000", "Ünïcode-作業", "a..b", "...", "a.b/c.d",
		"x@y:z+1,2;3=(4)[5]{6}'\"`~!#$%^&*|\\<>?",
		strings.Repeat("x", 256), "job-id/with\\troublesome:characters\n?&字", // the last is of Nomad's client's own suite
	} {
		j := valid()
		j.ID, j.Name = id, id
		require.NoError(t, j.Validate(), id)
	}
	j := valid()
	j.Name, j.TaskGroups[0].Name, j.TaskGroups[0].Tasks[0].Name = "a name of words", "a group", "a task"
	require.NoError(t, j.Validate())
	for id, want := range map[string]string{
		"a\x00b": "control characters", "a\x1b[31m": "control characters", "a\x7f": "control characters",
		"a\u0085b": "control characters", "\xff": "must be UTF-8",
		"../../etc": `must not have "." or ".."`,
		"a/../b":    `must not have`, "a/.": `must not have`, "..": `must not have`, "./a": `must not have`,
	} {
		j := valid()
		j.ID = id
		require.ErrorContains(t, j.Validate(), "job.ID: ", id)
		require.ErrorContains(t, j.Validate(), want, id)
		require.NotContains(t, j.Validate().Error(), "\x1b", "it is quoted")
		if strings.Contains(want, "control") {
			for path, set := range map[string]func(j *Job){
				"job.Name": func(j *Job) { j.Name = id },
				"].Name":   func(j *Job) { j.TaskGroups[0].Name = id },
				".task[":   func(j *Job) { j.TaskGroups[0].Tasks[0].Name = id },
			} {
				j := valid()
				set(j)
				require.ErrorContains(t, j.Validate(), path, id)
				require.ErrorContains(t, j.Validate(), want, id)
				require.NotContains(t, j.Validate().Error(), "\x1b", "it is quoted")
			}
		}
	}
}

// A job is bounded before it is looked at: what is refused costs next to nothing and says so in one line.
func TestJobsAreBounded(t *testing.T) {
	t.Parallel()
	group := func(i int) *TaskGroup {
		return &TaskGroup{Name: fmt.Sprintf("g%d", i), Tasks: []*Task{{Name: "t", Driver: "fake"}}}
	}
	for want, spoil := range map[string]func(j *Job){
		"job.TaskGroups: a job has at most 1000 groups, got 20001": func(j *Job) {
			for i := range 20_000 {
				j.TaskGroups = append(j.TaskGroups, group(i))
			}
		},
		"job: a job has at most 1000 tasks, got 2000": func(j *Job) {
			j.TaskGroups = nil
			for i := range 2 {
				g := group(i)
				for k := range 999 {
					g.Tasks = append(g.Tasks, &Task{Name: fmt.Sprint(k), Driver: "fake"})
				}
				j.TaskGroups = append(j.TaskGroups, g)
			}
		},
		"job.Constraints: at most 1000 of them, got 1001": func(j *Job) { j.Constraints = make([]*constraint.Constraint, 1001) },
		"job.group[g].Networks: at most 1000 of them":     func(j *Job) { j.TaskGroups[0].Networks[0].DynamicPorts = make([]network.Port, 5000) },
		"job.group[g].task[t].Env: at most 1000 of them": func(j *Job) {
			for i := range 1001 {
				j.TaskGroups[0].Tasks[0].Env[fmt.Sprint("K", i)] = "x"
			}
		},
		"job.group[" + strings.Repeat("g", 300) + "].Name: must have at most 255 bytes": func(j *Job) {
			j.TaskGroups[0].Name = strings.Repeat("g", 300)
		},
		"].Name: must have at most 255 bytes, got 256": func(j *Job) {
			j.TaskGroups[0].Tasks[0].Name = strings.Repeat("t", 256)
		},
	} {
		j := valid()
		spoil(j)
		j.Canonicalize()
		err := j.Validate()
		require.ErrorContains(t, err, want)
		require.Equal(t, 1, strings.Count(err.Error(), "\n")+1, err)
	}
	j := valid()
	j.TaskGroups = nil
	for i := range 1000 {
		j.TaskGroups = append(j.TaskGroups, group(i))
	}
	j.Canonicalize()
	require.NoError(t, j.Validate())
}
