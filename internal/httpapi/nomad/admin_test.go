package nomad_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/hashicorp/nomad/api/contexts"
	"github.com/stretchr/testify/require"
)

func sleeper(id string, command ...string) *api.Job {
	job := api.NewServiceJob(id, id, "global", 50)
	task := api.NewTask("t", "raw_exec").SetConfig("command", command[0]).SetConfig("args", command[1:])
	task.Require(&api.Resources{CPU: new(50), MemoryMB: new(16)})
	task.KillTimeout = new(time.Second)
	job.Update = &api.UpdateStrategy{MaxParallel: new(0)} // no deployments, which would block scaling
	return job.AddTaskGroup(api.NewTaskGroup("g", 1).AddTask(task))
}

// What people do to jobs, allocations and nodes, against the real control plane.
func TestAdministration(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	_, _, err := c.client.Jobs().Register(sleeper("svc", "/bin/sleep", "1000"), nil)
	require.NoError(t, err)
	alloc := c.await(t, "svc", "running")

	t.Run("scale, versions, revert", func(t *testing.T) { tryVersions(t, c) })
	t.Run("check index", func(t *testing.T) { tryCheckIndex(t, c) })
	t.Run("restart, signal, stop", func(t *testing.T) { tryLifecycle(t, c) })
	t.Run("search", func(t *testing.T) { trySearch(t, c, alloc) })
	t.Run("node", func(t *testing.T) { tryNode(t, c) })
	t.Run("dispatch and periodic", func(t *testing.T) { tryChildren(t, c) })
	t.Run("namespaces, pools, scheduler", func(t *testing.T) { tryCluster(t, c) })
	t.Run("garbage", func(t *testing.T) { tryGarbage(t, c) })
}

func tryVersions(t *testing.T, c *cluster) {
	jobs := c.client.Jobs()
	_, _, err := jobs.Scale("svc", "g", new(3), "more", false, nil, nil)
	require.NoError(t, err)
	c.running(t, "svc", 3)
	status, _, err := jobs.ScaleStatus("svc", nil)
	require.NoError(t, err)
	require.Equal(t, 3, status.TaskGroups["g"].Desired)
	versions, diffs, _, err := jobs.Versions("svc", true, nil)
	require.NoError(t, err)
	require.Len(t, versions, 2)
	require.Equal(t, "Edited", diffs[0].Type)
	_, _, err = jobs.Stable("svc", 0, true, nil)
	require.NoError(t, err)
	_, _, err = jobs.Revert("svc", 0, nil, nil, "", "")
	require.NoError(t, err)
	c.running(t, "svc", 1)
	_, _, err = jobs.Revert("svc", 99, nil, nil, "", "")
	require.ErrorContains(t, err, "404")
}

func tryCheckIndex(t *testing.T, c *cluster) {
	jobs := c.client.Jobs()
	_, _, err := jobs.EnforceRegister(sleeper("svc", "/bin/sleep", "5"), 1, nil)
	require.ErrorContains(t, err, "job modify index")
	_, _, err = jobs.EnforceRegister(sleeper("new", "/bin/sleep", "5"), 7, nil)
	require.ErrorContains(t, err, "job modify index")
}

func tryLifecycle(t *testing.T, c *cluster) {
	alloc := c.await(t, "svc", "running")
	require.NoError(t, c.client.Allocations().Restart(alloc, "t", nil))
	c.until(t, alloc.ID, func(a *api.Allocation) bool {
		return a.TaskStates["t"].Restarts == 1 && a.TaskStates["t"].State == "running"
	})
	require.ErrorContains(t, c.client.Allocations().Signal(alloc, nil, "t", "SIGNONSENSE"), "400")
	require.NoError(t, c.client.Allocations().Signal(alloc, nil, "t", "SIGCONT"))
	stopped, err := c.client.Allocations().Stop(alloc, nil)
	require.NoError(t, err)
	require.NotEmpty(t, stopped.EvalID)
	c.until(t, alloc.ID, func(a *api.Allocation) bool { return a.ClientStatus == "complete" && a.NextAllocation != "" })
}

func trySearch(t *testing.T, c *cluster, alloc *api.Allocation) {
	found, _, err := c.client.Search().PrefixSearch(alloc.ID[:6], contexts.All, nil)
	require.NoError(t, err)
	require.Equal(t, []string{alloc.ID}, found.Matches[contexts.Allocs])
	fuzzy, _, err := c.client.Search().FuzzySearch("sleep", contexts.Jobs, nil)
	require.NoError(t, err)
	require.Equal(t, "/bin/sleep", fuzzy.Matches[contexts.Commands][0].ID)
}

func tryNode(t *testing.T, c *cluster) {
	jobs := c.client.Jobs()
	n := c.client.Nodes()
	list, _, err := n.List(nil)
	require.NoError(t, err)
	id := list[0].ID
	_, err = n.ToggleEligibility(id, false, nil)
	require.NoError(t, err)
	reg, _, err := jobs.Register(sleeper("waits", "/bin/sleep", "1000"), nil)
	require.NoError(t, err)
	q := &api.QueryOptions{WaitTime: 5 * time.Second}
	for { // it is not placed, and says why
		e, meta, err := c.client.Evaluations().Info(reg.EvalID, q.WithContext(t.Context()))
		require.NoError(t, err)
		if e.Status == "complete" {
			require.NotEmpty(t, e.BlockedEval)
			require.Contains(t, e.FailedTGAllocs, "g")
			break
		}
		q.WaitIndex = meta.LastIndex
	}
	_, err = n.ToggleEligibility(id, true, nil)
	require.NoError(t, err)
	c.await(t, "waits", "running")
	_, err = n.UpdateDrain(id, &api.DrainSpec{Deadline: -1}, false, nil)
	require.NoError(t, err)
	c.await(t, "waits", "complete")
	node, _, err := n.Info(id, nil)
	require.NoError(t, err)
	require.Equal(t, "ineligible", node.SchedulingEligibility)
	_, err = n.UpdateDrain(id, nil, true, nil)
	require.NoError(t, err)
	_, _, err = n.ForceEvaluate(id, nil)
	require.NoError(t, err)
	c.running(t, "waits", 1)
	_, err = n.ToggleEligibility("11111111-0000-4000-8000-000000000000", true, nil)
	require.ErrorContains(t, err, "node not found")
}

func tryChildren(t *testing.T, c *cluster) {
	jobs := c.client.Jobs()
	param := sleeper("param", "/bin/true")
	param.Type = new("batch")
	param.ParameterizedJob = &api.ParameterizedJobConfig{MetaRequired: []string{"who"}}
	_, _, err := jobs.Register(param, nil)
	require.NoError(t, err)
	_, _, err = jobs.Dispatch("param", nil, nil, "", nil)
	require.ErrorContains(t, err, "400")
	child, _, err := jobs.Dispatch("param", map[string]string{"who": "me"}, []byte("payload"), "", nil)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(child.DispatchedJobID, "param/dispatch-"), child.DispatchedJobID)
	info, _, err := jobs.Info(child.DispatchedJobID, nil)
	require.NoError(t, err)
	require.Equal(t, "me", info.Meta["who"])
	c.await(t, child.DispatchedJobID, "complete")

	cron := sleeper("cron", "/bin/true")
	cron.Type = new("batch")
	cron.Periodic = &api.PeriodicConfig{Spec: new("0 0 1 1 *"), Enabled: new(true)}
	_, _, err = jobs.Register(cron, nil)
	require.NoError(t, err)
	evalID, _, err := jobs.PeriodicForce("cron", nil)
	require.NoError(t, err)
	eval, _, err := c.client.Evaluations().Info(evalID, nil)
	require.NoError(t, err)
	c.await(t, eval.JobID, "complete")
}

func tryCluster(t *testing.T, c *cluster) {
	jobs := c.client.Jobs()
	_, err := c.client.Namespaces().Register(&api.Namespace{Name: "team"}, nil)
	require.NoError(t, err)
	there := sleeper("svc", "/bin/sleep", "1000")
	_, _, err = jobs.Register(there, &api.WriteOptions{Namespace: "team"})
	require.NoError(t, err)
	list, _, err := jobs.List(&api.QueryOptions{Namespace: "team"})
	require.NoError(t, err)
	require.Len(t, list, 1)
	_, err = c.client.Namespaces().Delete("team", nil)
	require.Error(t, err, "it has a job")
	_, _, err = jobs.Deregister("svc", true, &api.WriteOptions{Namespace: "team"})
	require.NoError(t, err)
	_, _, err = jobs.Register(there, &api.WriteOptions{Namespace: "nowhere"})
	require.Error(t, err)
	_, err = c.client.NodePools().Register(&api.NodePool{Name: "gpu"}, nil)
	require.NoError(t, err)
	_, err = c.client.NodePools().Delete("gpu", nil)
	require.NoError(t, err)
	conf, _, err := c.client.Operator().SchedulerGetConfiguration(nil)
	require.NoError(t, err)
	conf.SchedulerConfig.SchedulerAlgorithm = api.SchedulerAlgorithmSpread
	set, _, err := c.client.Operator().SchedulerCASConfiguration(conf.SchedulerConfig, nil)
	require.NoError(t, err)
	require.True(t, set.Updated)
	set, _, err = c.client.Operator().SchedulerCASConfiguration(conf.SchedulerConfig, nil)
	require.NoError(t, err)
	require.False(t, set.Updated)
}

func tryGarbage(t *testing.T, c *cluster) {
	jobs := c.client.Jobs()
	_, _, err := jobs.Deregister("cron", false, nil)
	require.NoError(t, err)
	require.NoError(t, c.client.System().GarbageCollect())
	require.NoError(t, c.client.System().ReconcileSummaries())
}

// running waits until exactly n allocations of the job run.
func (c *cluster) running(t *testing.T, job string, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	q := (&api.QueryOptions{WaitTime: 10 * time.Second}).WithContext(ctx)
	for {
		list, meta, err := c.client.Jobs().Allocations(job, true, q)
		require.NoError(t, err)
		count, other := 0, 0
		for _, a := range list {
			switch {
			case a.ClientStatus == "running" && a.DesiredStatus == "run":
				count++
			case a.ClientStatus == "running" || a.ClientStatus == "pending":
				other++
			}
		}
		if count == n && other == 0 {
			return
		}
		q.WaitIndex = meta.LastIndex
	}
}

// until waits for a condition on an allocation.
func (c *cluster) until(t *testing.T, id string, ok func(*api.Allocation) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	q := (&api.QueryOptions{WaitTime: 10 * time.Second}).WithContext(ctx)
	for {
		a, meta, err := c.client.Allocations().Info(id, q)
		require.NoError(t, err)
		if ok(a) {
			return
		}
		q.WaitIndex = meta.LastIndex
	}
}

// TestADrainMayCarryMarkEligible: Nomad's command line sends both with every drain; the second counts without the first.
func TestADrainMayCarryMarkEligible(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	answer := w.do("PUT", "/v1/node/"+nodeID+"/drain", `{"DrainSpec":{"Deadline":"1h"},"MarkEligible":true}`)
	require.Equal(t, 200, answer.Code, answer.Body)
	require.Contains(t, w.intake.calls[len(w.intake.calls)-1], "false", "the node is not to be eligible while it is drained")
}
