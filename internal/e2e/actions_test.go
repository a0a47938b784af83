package e2e

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"
)

// An action's command and arguments reach the task as the job has them: what stands in ${} is for the action's shell, which has the
// task's environment, and nothing else replaces it.
func TestAnActionHasItsTasksEnvironment(t *testing.T) {
	t.Parallel()
	c := dev(t).nomad()
	job := rawJob("acts", "service", "/bin/sh", "-c", "while :; do sleep 0.05; done")
	job.TaskGroups[0].Tasks[0].Env = map[string]string{"COLOUR": "blue"}
	job.TaskGroups[0].Tasks[0].Actions = []*api.Action{
		{Name: "tell/größe?a=b&c", Command: "/bin/sh", Args: []string{"-c", "echo ${NOMAD_JOB_NAME} $COLOUR; exit 4"}},
		{Name: "plain", Command: "/bin/echo", Args: []string{"${NOMAD_JOB_NAME}"}},
	}
	_, _, err := c.Jobs().Register(job, nil)
	require.NoError(t, err)
	task(t, c, "acts", "a running task", func(s *api.TaskState) bool { return s.State == "running" })
	allocs, _, err := c.Jobs().Allocations("acts", false, nil)
	require.NoError(t, err)
	alloc, _, err := c.Allocations().Info(allocs[0].ID, nil)
	require.NoError(t, err)
	run := func(name string) (int, string) {
		var out bytes.Buffer
		code, err := c.Jobs().ActionExec(t.Context(), alloc, "acts", "main", false, nil, name, strings.NewReader(""), &out, io.Discard, nil, nil)
		require.NoError(t, err)
		return code, out.String()
	}
	code, out := run("tell/größe?a=b&c")
	require.Equal(t, 4, code)
	require.Equal(t, "acts blue\n", out)
	code, out = run("plain")
	require.Zero(t, code)
	require.Equal(t, "${NOMAD_JOB_NAME}\n", out)
}
