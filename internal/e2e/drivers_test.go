package e2e

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"
)

// driverJob is a job of one task, as Nomad's client sends it.
func driverJob(id, kind, driver string, config map[string]any) *api.Job {
	task := api.NewTask("main", driver)
	task.Config, task.Resources = config, &api.Resources{CPU: new(50), MemoryMB: new(128)}
	j := api.NewServiceJob(id, id, "global", 50)
	if kind == "batch" {
		j = api.NewBatchJob(id, id, "global", 50)
	}
	return j.AddTaskGroup(api.NewTaskGroup("group", 1).AddTask(task))
}

// TestNomadsExecDriver: a job file of Nomad's for exec runs unchanged, outlives kill -9 of the agent, and leaves nothing.
func TestNomadsExecDriver(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	args := append([]string{"-server", "-client"}, config(t, data, `plugin "exec" {
  config {
    allow_host_network = true
    denied_host_uids   = "0"
  }
}`)...)
	a := start(t, args...)
	t.Cleanup(func() { cleanAfter(t, args) })
	c := a.nomad()
	const marker = "7421.5"
	j := driverJob("svc", "service", "exec", map[string]any{
		"command": "app", "args": []string{"${NOMAD_TASK_NAME}", marker}, "cap_drop": []string{"all"}, "pid_mode": "private",
	})
	j.TaskGroups[0].Tasks[0].Templates = []*api.Template{{
		EmbeddedTmpl: new("#!/bin/sh\necho $1 $(id -un) $(pwd)\nexec sleep $2\n"), DestPath: new("local/app"),
	}}
	_, _, err := c.Jobs().Register(j, nil)
	require.NoError(t, err)
	before := allocation(t, c, "svc", "running")
	eventually(t, "output", func() (bool, string) {
		out := logs(t, c, before.ID, "stdout")
		return out == "main nobody /\n", out
	})
	pids := processes(marker)
	require.Len(t, pids, 1)
	a.PullThePlug()
	require.NoError(t, syscall.Kill(pids[0], 0), "the task outlives the agent")
	a = start(t, args...)
	c = a.nomad()
	again := allocation(t, c, "svc", "running")
	require.Equal(t, before.ID, again.ID)
	require.Equal(t, pids, processes(marker))
	stats, err := c.Allocations().Stats(&api.Allocation{ID: again.ID, NodeID: again.NodeID}, nil)
	require.NoError(t, err)
	require.Positive(t, stats.ResourceUsage.MemoryStats.RSS)
	_, _, err = c.Jobs().Deregister("svc", true, nil)
	require.NoError(t, err)
	eventually(t, "the task's end", func() (bool, string) { return len(processes(marker)) == 0, "it runs" })

	j = driverJob("root", "batch", "exec", map[string]any{"command": "/bin/true"})
	j.TaskGroups[0].Tasks[0].User = "root"
	j.TaskGroups[0].RestartPolicy = &api.RestartPolicy{Attempts: new(0), Mode: new("fail")}
	j.TaskGroups[0].ReschedulePolicy = &api.ReschedulePolicy{Attempts: new(0), Unlimited: new(false)}
	_, _, err = c.Jobs().Register(j, nil)
	require.NoError(t, err)
	failed := allocation(t, c, "root", "failed")
	require.Contains(t, messages(failed), `user: "root" has the id 0, which this node denies (denied_host_uids)`)

	checked, _, err := c.Jobs().Validate(driverJob("bad", "batch", "exec", map[string]any{"command": "x", "pid_mode": "host"}), nil)
	require.NoError(t, err)
	require.Contains(t, checked.Error, "pid_mode: host is not to be had")
	metric := refusal(t, c, driverJob("pods", "batch", "podman", map[string]any{"image": "x"}))
	require.Len(t, metric.ConstraintFiltered, 1)
	for text := range metric.ConstraintFiltered {
		require.Regexp(t, `^missing drivers: podman \(the nearest that is there: (docker|sandbox)\)$`, text)
	}
}

// processes are those whose command line ends with a word.
func processes(word string) (pids []int) {
	names, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, n := range names {
		line, err := os.ReadFile(n)
		if err != nil || len(line) < len(word)+1 || string(line[len(line)-len(word)-1:]) != word+"\x00" {
			continue
		}
		pid := 0
		for _, digit := range filepath.Base(filepath.Dir(n)) {
			pid = 10*pid + int(digit-'0')
		}
		pids = append(pids, pid)
	}
	return pids
}
