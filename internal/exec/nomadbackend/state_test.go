package nomadbackend

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/exec/environment"
)

func TestPoolsOfFailingRunnersWait(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		failures, size int
		want           time.Duration
	}{
		{0, 5, 0},
		{4, 5, 0},
		{5, 5, time.Second},
		{9, 5, time.Second},
		{10, 5, 2 * time.Second},
		{15, 5, 4 * time.Second},
		{1, 0, time.Second},
		{1_000_000, 1, time.Minute},
	} {
		require.Equal(t, c.want, backoff(c.failures, c.size), "%d failures of a pool of %d", c.failures, c.size)
	}
}

func TestAFailedRunnerDelaysTheNextOnes(t *testing.T) {
	t.Parallel()
	b := pool(t, execution.Environment{ID: "e", Image: "host", PoolSize: 1}, 0, 0, 1, 0)
	r := b.runners["starting0"]
	before := time.Now()
	b.setAllocLocked(r, &drover.Allocation{ID: "starting0", ClientStatus: drover.AllocClientFailed, ModifyIndex: 2})
	require.True(t, r.ending)
	require.Equal(t, 1, b.envs["e"].failures)
	require.WithinRange(t, b.envs["e"].notBefore, before.Add(time.Second), time.Now().Add(time.Second))

	b.setAllocLocked(&runnerJob{id: "x", env: "e"}, &drover.Allocation{ID: "x", ClientStatus: drover.AllocClientRunning})
	require.Zero(t, b.envs["e"].failures, "one that runs ends the row")
}

func TestAClaimedRunnerThatFailsIsNoFaultOfItsPool(t *testing.T) {
	t.Parallel()
	b := pool(t, execution.Environment{ID: "e", Image: "host", PoolSize: 1}, 0, 0, 0, 1)
	b.setAllocLocked(b.runners["claimed0"], &drover.Allocation{ID: "claimed0", ClientStatus: drover.AllocClientFailed})
	require.Zero(t, b.envs["e"].failures)
}

func TestOlderNewsOfAnAllocationAreNotTaken(t *testing.T) {
	t.Parallel()
	b := pool(t, execution.Environment{ID: "e", Image: "host", PoolSize: 1}, 0, 1, 0, 0)
	r := b.runners["ready0"]
	b.setAllocLocked(r, &drover.Allocation{ID: "ready0", ClientStatus: drover.AllocClientComplete, ModifyIndex: 9})
	b.setAllocLocked(r, &drover.Allocation{ID: "ready0", ClientStatus: drover.AllocClientRunning, ModifyIndex: 8})
	require.Equal(t, drover.AllocClientComplete, b.allocs["ready0"].ClientStatus)
}

func TestOnlySoManyEndedAllocationsAreRemembered(t *testing.T) {
	t.Parallel()
	b := pool(t, execution.Environment{ID: "e", Image: "host"}, 0, 0, 0, 0)
	for i := range maxEnded + 10 {
		r := &runnerJob{id: fmt.Sprint(i), env: "e"}
		b.setAllocLocked(r, &drover.Allocation{ID: fmt.Sprint(i), ClientStatus: drover.AllocClientComplete})
	}
	require.Len(t, b.allocs, maxEnded)
	require.NotContains(t, b.allocs, "9")
	require.Contains(t, b.allocs, "10")
}

func TestSubscriptions(t *testing.T) {
	t.Parallel()
	b := newBackend(t, "http://127.0.0.1:1")
	for i := range 3 {
		b.emitLocked(drover.TopicAllocation, fmt.Sprint(i))
	}
	sub, err := b.Subscribe(2)
	require.NoError(t, err)
	for want := uint64(2); want <= 3; want++ {
		e, err := sub.Next(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, e.Index)
		require.Equal(t, fmt.Sprint(want-1), e.Events[0].Key)
	}
	late := errors.New("late")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(late)
	_, err = sub.Next(ctx)
	require.ErrorIs(t, err, late, "there is none yet")

	for i := range 3 * maxEvents {
		b.emitLocked(drover.TopicAllocation, fmt.Sprint(i))
	}
	_, err = sub.Next(t.Context())
	require.Equal(t, drover.Gone, drover.CodeOf(err), "who is too slow reads everything anew")
	_, err = b.Subscribe(3)
	require.Equal(t, drover.Gone, drover.CodeOf(err))
	sub, err = b.Subscribe(b.index)
	require.NoError(t, err)
	e, err := sub.Next(t.Context())
	require.NoError(t, err)
	require.Equal(t, b.index, e.Index)
}

func TestAReplacedEnvironmentOutdatesItsRunners(t *testing.T) {
	t.Parallel()
	e := execution.Environment{ID: "e", Image: "host", PoolSize: 1}
	b := pool(t, e, 0, 1, 0, 0)
	require.Zero(t, b.allocs["ready0"].Job.Version)
	e.MemoryMaxMB = 99
	require.NoError(t, b.setEnvLocked(e))
	require.Equal(t, uint64(1), b.allocs["ready0"].Job.Version)
	require.NotEqual(t, b.envs["e"].generation, b.runners["ready0"].generation)
}

func TestAnEnvironmentKeepsItsDemandWhenItIsPutAgain(t *testing.T) {
	t.Parallel()
	e := execution.Environment{ID: "e", Image: "host", PoolSize: 1}
	b := pool(t, e, 0, 0, 0, 0)
	b.envs["e"].job.TaskGroups[0].Pool.Demand = 7
	e.PoolSize = 2
	require.NoError(t, b.setEnvLocked(e))
	require.Equal(t, drover.WarmPool{Size: 2, Demand: 7}, *b.envs["e"].job.TaskGroups[0].Pool)
}

func TestEventsOfOthersAreNotTaken(t *testing.T) {
	t.Parallel()
	b := pool(t, execution.Environment{ID: "e", Image: "host"}, 0, 0, 0, 0)
	before := b.index
	for _, e := range []api.Event{
		{Topic: api.TopicJob, Type: "JobRegistered", Key: "web", Payload: map[string]any{"Job": map[string]any{"ID": "web"}}},
		{Topic: api.TopicNode, Type: "NodeRegistration", Key: "n"},
		{Topic: api.TopicAllocation, Key: "a", Payload: map[string]any{"Allocation": map[string]any{"ID": "a", "JobID": "web"}}},
		{Topic: api.TopicAllocation, Key: "a", Payload: map[string]any{"Allocation": map[string]any{"ID": "a", "JobID": runnerPrefix + "x"}}},
		{Topic: api.TopicAllocation, Key: "a", Payload: map[string]any{"Allocation": nil}},
		{Topic: api.TopicJob, Type: "JobRegistered", Key: envPrefix + "x", Payload: map[string]any{"Job": map[string]any{"Stop": true}}},
	} {
		b.take(&e)
	}
	require.Equal(t, before, b.index)
	require.Len(t, b.envs, 1)
	require.Empty(t, b.runners)

	b.take(&api.Event{Topic: api.TopicJob, Type: "JobDeregistered", Key: envPrefix + "e"})
	require.Empty(t, b.envs)
}

func TestErrorsOfTheClusterHaveCodes(t *testing.T) {
	t.Parallel()
	b := newBackend(t, "http://127.0.0.1:1")
	for text, want := range map[string]drover.Code{
		"Unexpected response code: 400 (bad job)":  drover.Invalid,
		"Unexpected response code: 403 (no token)": drover.Forbidden,
		"Unexpected response code: 500":            drover.Unavailable,
		"connection refused":                       drover.Unavailable,
	} {
		require.Equal(t, want, drover.CodeOf(b.reached(errors.New(text))), text)
	}
	for text, want := range map[string]bool{
		"Unexpected response code: 404 (job not found)": true, "Unexpected response code: 500 (Job not found)": true,
		"Unexpected response code: 500 (no leader)": false,
	} {
		require.Equal(t, want, notFound(errors.New(text)), text)
	}
	require.False(t, notFound(nil))
}

func TestLimitsThatNeedASupervisorAreRefused(t *testing.T) {
	t.Parallel()
	for field, l := range map[string]drover.Limits{
		"memoryMB": {MemoryMB: 1}, "pids": {Pids: 1}, "cpuMHz": {CPUMHz: 1},
	} {
		err := unsupported(l)
		require.Equal(t, drover.NotImplemented, drover.CodeOf(err))
		require.ErrorContains(t, err, field)
	}
	require.NoError(t, unsupported(drover.Limits{Wall: time.Second, CPU: time.Second, OpenFiles: 9, FileSizeMB: 1, OutputBytes: 5}))
}

func TestTasksAreFittedToTheClustersDrivers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		driver string // of the cluster
		e      execution.Environment
		config map[string]any // beside sleep infinity
		user   string
	}{
		"docker": {
			"docker",
			execution.Environment{Image: "python:3", Network: true},
			map[string]any{"image": "python:3"},
			"0",
		},
		"docker without network": {
			"docker",
			execution.Environment{Image: "python:3"},
			map[string]any{"image": "python:3", "network_mode": "none"},
			"0",
		},
		"docker with a runtime": {
			"docker",
			execution.Environment{Image: "python:3", Driver: "docker", Runtime: "runsc", Network: true},
			map[string]any{"image": "python:3", "runtime": "runsc"},
			"0",
		},
		"podman": {
			"docker",
			execution.Environment{Image: "python:3", Driver: "podman"},
			map[string]any{"image": "python:3", "network_mode": "none"},
			"0",
		},
		"raw_exec": {"docker", execution.Environment{Driver: "raw_exec"}, map[string]any{}, ""},
		"a sandbox of a cluster that is Drover's": {
			"sandbox",
			execution.Environment{Image: "host"},
			map[string]any{"image": "host", "network_mode": "none", "pids_limit": 256.0, "disk_mb": 64.0},
			"root",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, err := New(Config{Cluster: Cluster{Address: "http://127.0.0.1:1", Driver: c.driver}}, Deps{})
			require.NoError(t, err)
			c.e.ID = "e"
			job, err := b.runnerGroup(environment.Canonicalize(c.e))
			require.NoError(t, err)
			task := job.TaskGroups[0].Tasks[0]
			c.config["command"], c.config["args"] = "sleep", []string{"infinity"}
			require.Equal(t, c.config, task.Config)
			require.Equal(t, c.user, task.User)
			require.Equal(t, "batch", *job.Type, "a runner that ends is not restarted")
			require.Zero(t, *job.TaskGroups[0].RestartPolicy.Attempts)
		})
	}
}

func TestWhoRunsAWrappedCommand(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spec execution.Spec
		want string
	}{
		"nobody":     {execution.Spec{}, "nobody"},
		"a user":     {execution.Spec{User: "app"}, "app"},
		"root":       {execution.Spec{Privileged: true}, ""},
		"root, too":  {execution.Spec{Privileged: true, User: "app"}, ""},
		"a terminal": {execution.Spec{TTY: true}, "nobody"},
	} {
		c.spec.ID, c.spec.Argv, c.spec.WorkDir = "x1", []string{"ls", "-l"}, "/w"
		c.spec.Env = map[string]string{"B": "2", "A": "1 $x"}
		argv := wrap(c.spec)
		require.Equal(t, []string{"drover", "x1", "/w", c.want, "DROVER_EXECUTION=x1", "A=1 $x", "B=2", "ls", "-l"}, argv[3:], name)
	}
	argv := wrap(execution.Spec{ID: "x1", Argv: []string{"a=b", "c"}})
	require.Equal(t, []string{"/bin/sh", "-c", `exec "$@"`, "sh", "a=b", "c"}, argv[len(argv)-6:], "env would take a=b for a variable")
}
