package environment

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/constraint"
	"github.com/drover-project/drover/execution"
)

func TestAnEnvironmentSurvivesBeingAJob(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		env := execution.Environment{
			ID:          rapid.StringMatching(`[a-z0-9][a-z0-9._-]{0,20}`).Draw(t, "id"),
			Image:       rapid.SampledFrom([]string{"host", "python:3.12", "ghcr.io/a/b@sha256:" + hex64, "/srv/image.tar"}).Draw(t, "image"),
			PoolSize:    rapid.IntRange(0, 1000).Draw(t, "pool"),
			MaxRunners:  1000,
			CPU:         rapid.IntRange(0, 5000).Draw(t, "cpu"),
			MemoryMB:    rapid.OneOf(rapid.Just(0), rapid.IntRange(10, 64)).Draw(t, "memory"),
			MemoryMaxMB: rapid.IntRange(64, 4096).Draw(t, "max"),
			DiskMB:      rapid.IntRange(0, 512).Draw(t, "disk"),
			PidsLimit:   rapid.IntRange(0, 512).Draw(t, "pids"),
			Network:     rapid.Bool().Draw(t, "network"),
			ExposedPorts: rapid.SliceOfN(rapid.Uint16Min(1), 0, 5).
				Draw(t, "ports"),
			User:        rapid.SampledFrom([]string{"", "user", "1000:1000"}).Draw(t, "user"),
			Env:         rapid.MapOf(rapid.StringMatching(`[A-Z]{1,5}`), rapid.String()).Filter(noNUL).Draw(t, "env"),
			IdleTimeout: time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "idle")),
			Constraints: []*constraint.Constraint{{LTarget: "${attr.cpu.arch}", RTarget: "amd64", Operand: "="}},
			Meta:        map[string]string{"a": "b"},
		}
		require.NoError(t, Validate(env))
		job, err := ToJob(env, Options{})
		require.NoError(t, err)
		require.Equal(t, env.PoolSize, job.TaskGroups[0].Pool.Size)

		wire, err := json.Marshal(job) // as it goes through APIs
		require.NoError(t, err)
		var back drover.Job
		require.NoError(t, json.Unmarshal(wire, &back))
		got, err := FromJob(&back)
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(Canonicalize(env), got))

		again, err := ToJob(got, Options{})
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(job, again), "an unchanged put is no change")
	})
}

const hex64 = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func noNUL(m map[string]string) bool { return ValidateEnv(m) == nil }

func TestOnlyThePoolOfTheJobChangesWithItsSize(t *testing.T) {
	t.Parallel()
	small, err := ToJob(execution.Environment{ID: "a", Image: "host", PoolSize: 1}, Options{})
	require.NoError(t, err)
	large, err := ToJob(execution.Environment{ID: "a", Image: "host", PoolSize: 9, MaxRunners: 20}, Options{})
	require.NoError(t, err)
	large.TaskGroups[0].Pool, large.TaskGroups[0].Count = small.TaskGroups[0].Pool, small.TaskGroups[0].Count
	require.Empty(t, cmp.Diff(small, large))
}

func grant(ttl time.Duration, audience ...string) *execution.IdentityGrant {
	return &execution.IdentityGrant{Audience: audience, TTL: ttl}
}

func TestValidateNamesEveryField(t *testing.T) {
	t.Parallel()
	good := execution.Environment{ID: "python", Image: "host"}
	for name, tc := range map[string]struct {
		change func(*execution.Environment)
		want   string
	}{
		"missing image":   {func(e *execution.Environment) { e.Image = "" }, "image: missing"},
		"upper case":      {func(e *execution.Environment) { e.Image = "Python:3" }, "not an image reference"},
		"bad tag":         {func(e *execution.Environment) { e.Image = "python:" }, "bad tag"},
		"space":           {func(e *execution.Environment) { e.Image = "py thon" }, "not an image reference"},
		"bad digest":      {func(e *execution.Environment) { e.Image = "python@sha256:12" }, "bad digest"},
		"host in docker":  {func(e *execution.Environment) { e.Driver = "docker" }, "docker"},
		"host in podman":  {func(e *execution.Environment) { e.Driver = "podman" }, "\"host\" is not an image that podman has"},
		"a runtime":       {func(e *execution.Environment) { e.Driver, e.Image, e.Runtime = "podman", "x", "runsc" }, "runtime: only the docker"},
		"image of raw":    {func(e *execution.Environment) { e.Driver, e.Image = "raw_exec", "python" }, "has no images"},
		"no id":           {func(e *execution.Environment) { e.ID = "" }, "id"},
		"id with slash":   {func(e *execution.Environment) { e.ID = "a/b" }, "id"},
		"no audience":     {func(e *execution.Environment) { e.Identity = &execution.IdentityGrant{} }, "identity.audience: 0"},
		"blank audience":  {func(e *execution.Environment) { e.Identity = grant(0, "a b") }, "identity.audience[0] \"a b\""},
		"the cluster":     {func(e *execution.Environment) { e.Identity = grant(0, "x", "nomadproject.io") }, "identity.audience[1]"},
		"short identity":  {func(e *execution.Environment) { e.Identity = grant(time.Second, "x") }, "identity.ttl"},
		"long identity":   {func(e *execution.Environment) { e.Identity = grant(48*time.Hour, "x") }, "identity.ttl"},
		"driver":          {func(e *execution.Environment) { e.Driver = "qemu" }, "driver"},
		"runtime":         {func(e *execution.Environment) { e.Runtime = "runsc" }, "runtime"},
		"negative pool":   {func(e *execution.Environment) { e.PoolSize = -1 }, "poolSize"},
		"huge cpu":        {func(e *execution.Environment) { e.CPU = 1 << 40 }, "cpu"},
		"huge pool":       {func(e *execution.Environment) { e.PoolSize = 1 << 30 }, "poolSize"},
		"little memory":   {func(e *execution.Environment) { e.MemoryMB = 9 }, "memoryMB 9"},
		"little at most":  {func(e *execution.Environment) { e.MemoryMaxMB = 9 }, "memoryMaxMB 9"},
		"negative memory": {func(e *execution.Environment) { e.MemoryMB = -5 }, "memoryMB"},
		"memory over max": {func(e *execution.Environment) { e.MemoryMB, e.MemoryMaxMB = 9, 3 }, "memoryMaxMB"},
		"pool over bound": {func(e *execution.Environment) { e.PoolSize, e.MaxRunners = 9, 3 }, "maxRunners"},
		"port 0":          {func(e *execution.Environment) { e.ExposedPorts = []uint16{0} }, "port 0"},
		"relative dir":    {func(e *execution.Environment) { e.WorkDir = "x" }, "workDir"},
		"idle":            {func(e *execution.Environment) { e.IdleTimeout = -1 }, "idleTimeout"},
		"env":             {func(e *execution.Environment) { e.Env = map[string]string{"A=B": ""} }, "env"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := good
			tc.change(&env)
			err := Validate(env)
			require.ErrorContains(t, err, tc.want)
			require.Equal(t, drover.Invalid, drover.CodeOf(err))
		})
	}
	require.NoError(t, Validate(good))
	other := good
	for _, image := range []string{
		"python", "python:3.12-slim", "openhpi/co_execenv_python:3.8", "docker.io/library/a_b__c.d:x", "localhost:5000/x",
		"REGISTRY.example.com/x", "[::1]:5000/x", "x@sha256:" + hex64, "/var/images/x.tar", "./layout",
	} {
		other.Image = image
		require.NoError(t, Validate(other), image)
	}
}

func TestForeignJobsAreNotEnvironments(t *testing.T) {
	t.Parallel()
	for _, job := range []*drover.Job{
		{ID: "web"},
		{ID: "environment-"},
		{ID: "environment-1", Namespace: "default"},
		{
			ID: "environment-1", Namespace: "default", Meta: map[string]string{metaKey: "{"},
			TaskGroups: []*drover.TaskGroup{{Pool: &drover.WarmPool{}}},
		},
	} {
		_, err := FromJob(job)
		require.Equal(t, drover.NotFound, drover.CodeOf(err), job.ID)
	}
}
