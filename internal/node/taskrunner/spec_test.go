package taskrunner_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/taskmachine"
	"github.com/drover-project/drover/network"
)

// started starts the bundle's task after a change, and returns what its driver got.
func started(t *testing.T, change func(b *bundle)) (got driver.Spec) {
	t.Helper()
	in(t, func(_ *testing.T, b *bundle) {
		change(b)
		b.fresh()
		got = b.world.Running("main").Spec
	})
	return got
}

func TestResourcesAreThoseOfThePlacement(t *testing.T) {
	t.Parallel()
	s := started(t, func(b *bundle) {
		b.cfg.Task.Resources = &drover.Resources{CPU: 100, MemoryMB: 64, MemoryMaxMB: 80}
		b.cfg.Group.EphemeralDisk = &drover.EphemeralDisk{SizeMB: 5}
	})
	require.Equal(
		t, []int64{100, 64, 80, 5}, []int64{s.CPUMHz, s.MemoryMB, s.MemoryMaxMB, s.DiskMB}, "without a placement, what the job asks for",
	)

	s = started(t, func(b *bundle) {
		b.cfg.Task.Resources = &drover.Resources{CPU: 100, MemoryMB: 64}
		b.cfg.Alloc.AllocatedResources = &drover.AllocatedResources{
			Shared: drover.AllocatedSharedResources{DiskMB: 7, Ports: []network.PortMapping{{Label: "http", Value: 8080}}},
			Tasks: map[string]*drover.AllocatedTaskResources{"main": {
				Cpu:      drover.AllocatedCpuResources{CpuShares: 200, ReservedCores: []uint16{3}},
				Memory:   drover.AllocatedMemoryResources{MemoryMB: 128, MemoryMaxMB: 256},
				Networks: []*network.Resource{{IP: "10.0.0.1"}},
			}},
		}
	})
	require.Equal(t, []int64{200, 128, 256, 7}, []int64{s.CPUMHz, s.MemoryMB, s.MemoryMaxMB, s.DiskMB})
	require.Equal(t, []uint16{3}, s.Cores)
	require.Equal(t, "http", s.Ports[0].Label)
	require.Equal(t, "10.0.0.1", s.Networks[0].IP, "an old job has its networks in its tasks")
}

func TestTheModeOfANetworkCountsWithoutPorts(t *testing.T) {
	t.Parallel()
	s := started(t, func(b *bundle) { b.cfg.Group.Networks = []*network.Resource{{Mode: "bridge"}} })
	require.Equal(t, "bridge", s.Networks[0].Mode)
}

func TestTheLogsOfATask(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config *drover.LogConfig
		want   driver.LogConfig
	}{
		"as usual": {nil, driver.LogConfig{MaxFiles: 10, MaxFileSize: 10 << 20}},
		"smaller":  {&drover.LogConfig{MaxFiles: 2, MaxFileSizeMB: 1}, driver.LogConfig{MaxFiles: 2, MaxFileSize: 1 << 20}},
		"none":     {&drover.LogConfig{Disabled: true}, driver.LogConfig{Disabled: true, MaxFiles: 10, MaxFileSize: 10 << 20}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := started(t, func(b *bundle) {
				b.cfg.Task.LogConfig = c.config
				c.want.Dir = b.cfg.Dir.Logs()
			})
			require.Equal(t, c.want, s.Log)
		})
	}
}

func TestWhatIsInterpolated(t *testing.T) {
	t.Parallel()
	s := started(t, func(b *bundle) {
		b.cfg.Task.User = "u-${NOMAD_TASK_NAME}"
		b.cfg.Task.Env = map[string]string{"WHO": "${NOMAD_JOB_ID}"}
		b.cfg.Task.Config = map[string]any{"args": []any{"${NOMAD_GROUP_NAME}"}}
	})
	require.Equal(t, "u-main", s.User)
	require.Equal(t, "j", s.Env["WHO"])
	require.Equal(t, []any{"g"}, s.Config["args"])
	require.Equal(t, []string{"j", "g", "main"}, []string{s.Job, s.Group, s.TaskName})
}

// TestARunnerIsRehearsedInACalmMoment: a warm runner may do in advance what its first command needs, if nobody waits.
func TestARunnerIsRehearsedInACalmMoment(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		pool *drover.WarmPool
		calm func() bool
		want bool
	}{
		"a task":           {nil, func() bool { return true }, false},
		"a runner":         {&drover.WarmPool{}, func() bool { return true }, true},
		"in busy moments":  {&drover.WarmPool{}, func() bool { return false }, false},
		"nobody can tell":  {&drover.WarmPool{}, nil, false},
		"neither the task": {nil, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := started(t, func(b *bundle) {
				b.cfg.Group.Pool, b.shared.Calm = c.pool, c.calm
			})
			require.Equal(t, c.want, s.Rehearse)
			require.Equal(t, c.pool != nil, s.Pool)
		})
	}
}

// TestAnUpdateInPlace: policies count at once, the rest from the next start.
func TestAnUpdateInPlace(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T, b *bundle) {
		b.fresh()
		job := *b.cfg.Alloc.Job
		group, task := *b.cfg.Group, *b.cfg.Task
		group.RestartPolicy = &drover.RestartPolicy{
			Attempts: new(0), Interval: group.RestartPolicy.Interval, Delay: group.RestartPolicy.Delay, Mode: "fail",
		}
		task.RestartPolicy = group.RestartPolicy
		group.Tasks = []*drover.Task{&task}
		job.TaskGroups = []*drover.TaskGroup{&group}
		alloc := *b.cfg.Alloc
		alloc.Job = &job
		b.runner.Update(&alloc, &group, &task)
		b.world.Running("main").End(driver.Exit{Code: 1})
		b.settle()
		require.Equal(t, taskmachine.Dead, b.phase(), "the new policy has no attempts")
	})
}
