package e2e

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"
)

// rawJob is a job of one task that is neither restarted nor replaced.
func rawJob(id, kind, command string, args ...string) *api.Job {
	task := api.NewTask("main", "raw_exec").SetConfig("command", command).SetConfig("args", args).
		Require(&api.Resources{CPU: new(20), MemoryMB: new(20)})
	group := api.NewTaskGroup("group", 1).AddTask(task)
	group.RestartPolicy = &api.RestartPolicy{Attempts: new(0), Mode: new("fail")}
	group.ReschedulePolicy = &api.ReschedulePolicy{Attempts: new(0), Unlimited: new(false)}
	return &api.Job{ID: &id, Type: &kind, Datacenters: []string{"dc1"}, TaskGroups: []*api.TaskGroup{group}}
}

func logs(t testing.TB, c *api.Client, allocID, kind string) string {
	t.Helper()
	alloc, _, err := c.Allocations().Info(allocID, nil)
	require.NoError(t, err)
	frames, errs := c.AllocFS().Logs(alloc, false, "main", kind, "start", 0, t.Context().Done(), nil)
	var out bytes.Buffer
	for {
		select {
		case f, open := <-frames:
			if !open {
				return out.String()
			}
			out.Write(f.Data)
		case err := <-errs:
			require.ErrorIs(t, err, io.EOF)
			return out.String()
		}
	}
}

// A job becomes a process, seen with the unmodified official client.
func TestABatchJobRunsToItsEnd(t *testing.T) {
	t.Parallel()
	c := dev(t).nomad()
	events, err := c.EventStream().Stream(t.Context(), map[api.Topic][]string{api.TopicAllocation: {"hello"}}, 0, nil)
	require.NoError(t, err)
	reg, _, err := c.Jobs().Register(rawJob("hello", "batch", "/bin/sh", "-c", "echo out; echo err >&2; exit 0"), nil)
	require.NoError(t, err)
	eval, _, err := c.Evaluations().Info(reg.EvalID, nil)
	require.NoError(t, err)
	require.Equal(t, "hello", eval.JobID)

	a := allocation(t, c, "hello", "complete")
	seen := map[string]bool{}
	for batch := range events {
		require.NoError(t, batch.Err)
		for _, e := range batch.Events {
			got, err := e.Allocation()
			require.NoError(t, err)
			seen[e.Type+" "+got.ClientStatus] = true
		}
		if seen["AllocationUpdated complete"] {
			break
		}
	}
	require.True(t, seen["PlanResult pending"], "%v", seen)
	require.Equal(t, "out\n", logs(t, c, a.ID, "stdout"))
	require.Equal(t, "err\n", logs(t, c, a.ID, "stderr"))
	state := a.TaskStates["main"]
	require.False(t, state.Failed)
	require.Equal(t, "dead", state.State)
	eventually(t, "the job to be dead", func() (bool, string) {
		j, _, err := c.Jobs().Info("hello", nil)
		require.NoError(t, err)
		return *j.Status == "dead", *j.Status
	})
}

func TestAServiceRunsIsEnteredAndStops(t *testing.T) {
	t.Parallel()
	c := dev(t).nomad()
	_, _, err := c.Jobs().Register(rawJob("svc", "service", "/bin/sleep", "1000"), nil)
	require.NoError(t, err)
	a := allocation(t, c, "svc", "running")
	full, _, err := c.Allocations().Info(a.ID, nil)
	require.NoError(t, err)

	var stdout, stderr bytes.Buffer
	code, err := c.Allocations().Exec(t.Context(), full, "main", false, []string{"/bin/sh", "-c", "cat; echo to-err >&2; exit 7"},
		strings.NewReader("from stdin\n"), &stdout, &stderr, nil, nil)
	require.NoError(t, err)
	require.Equal(t, 7, code)
	require.Equal(t, "from stdin\n", stdout.String())
	require.Equal(t, "to-err\n", stderr.String())

	_, err = c.Allocations().Exec(t.Context(), full, "main", false, []string{"/no/such/program"}, strings.NewReader(""), io.Discard,
		io.Discard, nil, nil)
	require.ErrorContains(t, err, "/no/such/program")

	_, _, err = c.Jobs().Deregister("svc", false, nil)
	require.NoError(t, err)
	require.Equal(t, a.ID, allocation(t, c, "svc", "complete").ID)
	_, _, err = c.Jobs().Deregister("svc", true, nil)
	require.NoError(t, err)
	_, _, err = c.Jobs().Info("svc", nil)
	require.ErrorContains(t, err, "404")
}

func TestBadJobsAreRefusedWithTheReason(t *testing.T) {
	t.Parallel()
	c := dev(t).nomad()
	job := rawJob("bad", "batch", "/bin/true")
	job.TaskGroups[0].Tasks[0].Driver = ""
	job.Priority = new(1000)
	_, _, err := c.Jobs().Register(job, nil)
	require.ErrorContains(t, err, "Driver")
	require.ErrorContains(t, err, "Priority")
	_, _, err = c.Jobs().Info("bad", nil)
	require.ErrorContains(t, err, "404")

	_, _, err = c.Jobs().Register(rawJob("missing", "batch", "/no/such/program"), nil)
	require.NoError(t, err)
	a := allocation(t, c, "missing", "failed")
	var texts []string
	for _, e := range a.TaskStates["main"].Events {
		texts = append(texts, e.DisplayMessage)
	}
	require.Contains(t, strings.Join(texts, "\n"), "/no/such/program")
}
