package nomad_test

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"
)

// A job becomes a process: the official client against real control, node and driver (issue 2, item 2).
func TestAJobBecomesAProcess(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	job := api.NewBatchJob("hello", "hello", "global", 50)
	task := api.NewTask("t", "raw_exec").SetConfig("command", "/bin/sh").
		SetConfig("args", []string{"-c", "echo out of $NOMAD_TASK_NAME; echo err >&2; exit 0"})
	task.Require(&api.Resources{CPU: new(50), MemoryMB: new(16)})
	job.AddTaskGroup(api.NewTaskGroup("g", 1).AddTask(task))
	events, err := c.client.EventStream().Stream(ctx, map[api.Topic][]string{api.TopicAllocation: {"hello"}}, 0, nil)
	require.NoError(t, err)
	start := time.Now()
	reg, _, err := c.client.Jobs().Register(job, nil)
	require.NoError(t, err)

	// Followed by the event stream: placed by a plan, run, completed.
	var seen []string
	var alloc *api.Allocation
	for line := range events {
		require.NoError(t, line.Err)
		for _, e := range line.Events {
			alloc, err = e.Allocation()
			require.NoError(t, err)
			seen = append(seen, e.Type+" "+alloc.ClientStatus)
		}
		if alloc.ClientStatus == "complete" || alloc.ClientStatus == "failed" {
			break
		}
	}
	require.Equal(t, "PlanResult pending", seen[0])
	require.Equal(t, "AllocationUpdated complete", seen[len(seen)-1], "%v", seen)
	t.Logf("register to complete: %v (%v)", time.Since(start), seen)

	// And by blocking query.
	q := &api.QueryOptions{WaitTime: 10 * time.Second}
	for {
		j, meta, err := c.client.Jobs().Info("hello", q.WithContext(ctx))
		require.NoError(t, err)
		if *j.Status == "dead" {
			break
		}
		q.WaitIndex = meta.LastIndex
	}
	eval, _, err := c.client.Evaluations().Info(reg.EvalID, nil)
	require.NoError(t, err)
	require.Equal(t, "complete", eval.Status)
	require.Equal(t, "out of t\n", c.logs(t, alloc, "stdout"))
	require.Equal(t, "err\n", c.logs(t, alloc, "stderr"))
	full, _, err := c.client.Allocations().Info(alloc.ID, nil)
	require.NoError(t, err)
	require.Equal(t, "dead", full.TaskStates["t"].State)
	require.False(t, full.TaskStates["t"].Failed)
	list, _, err := c.client.AllocFS().List(full, "alloc/logs", nil)
	require.NoError(t, err)
	require.NotEmpty(t, list)
	_, _, err = c.client.AllocFS().Stat(full, "../../..", nil)
	require.Error(t, err)

	sum, _, err := c.client.Jobs().Summary("hello", nil)
	require.NoError(t, err)
	require.Equal(t, 1, sum.Summary["g"].Complete)
	_, _, err = c.client.Jobs().Deregister("hello", true, nil)
	require.NoError(t, err)
	_, _, err = c.client.Jobs().Info("hello", nil)
	require.ErrorContains(t, err, "job not found")
}

func (c *cluster) logs(t *testing.T, alloc *api.Allocation, kind string) string {
	t.Helper()
	var out strings.Builder
	stop := make(chan struct{})
	defer close(stop)
	frames, errs := c.client.AllocFS().Logs(alloc, false, "t", kind, "start", 0, stop, nil)
	for {
		select {
		case f, ok := <-frames:
			if !ok {
				return out.String()
			}
			out.Write(f.Data)
		case err := <-errs:
			require.NoError(t, err)
		}
	}
}

// A service runs until it is stopped; commands run in it over the websocket.
func TestExecInAServiceAndStopIt(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	job := api.NewServiceJob("svc", "svc", "global", 50)
	task := api.NewTask("t", "raw_exec").SetConfig("command", "/bin/sleep").SetConfig("args", []string{"1000"})
	task.Require(&api.Resources{CPU: new(50), MemoryMB: new(16)})
	job.AddTaskGroup(api.NewTaskGroup("g", 1).AddTask(task))
	_, _, err := c.client.Jobs().Register(job, nil)
	require.NoError(t, err)
	alloc := c.await(t, "svc", "running")

	run := func(tty bool, stdin string, command ...string) (code int, out, errs string) {
		var stdout, stderr strings.Builder
		code, err := c.client.Allocations().Exec(t.Context(), alloc, "t", tty, command, strings.NewReader(stdin), &stdout, &stderr, nil, nil)
		require.NoError(t, err, "%v", command)
		return code, stdout.String(), stderr.String()
	}
	code, out, errs := run(false, "in", "/bin/sh", "-c", "cat; echo err >&2; exit 7")
	require.Equal(t, 7, code)
	require.Equal(t, "in", out)
	require.Equal(t, "err\n", errs)
	code, out, _ = run(false, "", "/bin/sh", "-c", "head -c 5242880 /dev/zero")
	require.Zero(t, code)
	require.Len(t, out, 5<<20)
	code, out, _ = run(true, "", "/bin/sh", "-c", "test -t 1 && echo terminal")
	require.Zero(t, code)
	require.Equal(t, "terminal\r\n", out)
	_, err = c.client.Allocations().Exec(t.Context(), alloc, "t", false, []string{"/no/such"}, strings.NewReader(""),
		io.Discard, io.Discard, nil, nil)
	require.ErrorContains(t, err, "/no/such")

	_, err = c.client.Allocations().Stats(alloc, nil)
	require.NoError(t, err)
	plan, _, err := c.client.Jobs().Plan(job, true, nil)
	require.NoError(t, err)
	require.Equal(t, "None", plan.Diff.Type)
	_, _, err = c.client.Jobs().Deregister("svc", false, nil)
	require.NoError(t, err)
	c.await(t, "svc", "complete")
	_, err = c.client.Allocations().Exec(t.Context(), alloc, "t", false, []string{"/bin/true"}, strings.NewReader(""),
		io.Discard, io.Discard, nil, nil)
	require.ErrorContains(t, err, "not running")
}

// await follows the job's allocations until one has the status.
func (c *cluster) await(t *testing.T, job, status string) *api.Allocation {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	q := (&api.QueryOptions{WaitTime: 10 * time.Second}).WithContext(ctx)
	for {
		list, meta, err := c.client.Jobs().Allocations(job, true, q)
		require.NoError(t, err)
		for _, a := range list {
			if a.ClientStatus == status {
				full, _, err := c.client.Allocations().Info(a.ID, nil)
				require.NoError(t, err)
				return full
			}
			require.NotEqual(t, "failed", a.ClientStatus, "%+v", a.TaskStates["t"])
		}
		q.WaitIndex = meta.LastIndex
	}
}
