package drover

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// valid is a job that can be registered, canonical.
func valid() *Job {
	j := &Job{ID: "j", TaskGroups: []*TaskGroup{{
		Name: "g", Networks: []*NetworkResource{{DynamicPorts: []Port{{Label: "http"}}}},
		Services: []*Service{{Name: "web", PortLabel: "http", Checks: []map[string]any{{"Type": "http", "Path": "/", "PortLabel": "http"}}}},
		Tasks:    []*Task{{Name: "t", Driver: "fake", Env: map[string]string{"PATH": "/x:${PATH}", "A": "${B} ${NOMAD_PORT_http} ${node.class}", "B": "$${nope.x} ${X:-1}"}}},
	}}}
	j.Canonicalize()
	return j
}

func TestEveryFaultIsToldAtOnceWithItsPath(t *testing.T) {
	t.Parallel()
	require.NoError(t, valid().Validate())
	faults := map[string]func(j *Job, g *TaskGroup, t *Task){
		"job.group[g].Count: must be from 0 to 50000": func(_ *Job, g *TaskGroup, _ *Task) { g.Count = new(1 << 40) },
		"job.group[g].Disconnect: LostAfter and StopOnClientAfter exclude": func(_ *Job, g *TaskGroup, _ *Task) {
			g.Disconnect = &DisconnectStrategy{LostAfter: 1, StopOnClientAfter: 1}
		},
		`job.group[g].Disconnect.Reconcile: must be best_score`: func(_ *Job, g *TaskGroup, _ *Task) { g.Disconnect = &DisconnectStrategy{Reconcile: "x"} },
		"job.group[g].Disconnect: excludes MaxClientDisconnect": func(_ *Job, g *TaskGroup, _ *Task) {
			g.Disconnect, g.MaxClientDisconnect = &DisconnectStrategy{Reconcile: "best_score"}, new(time.Hour)
		},
		"job.group[g].volume[v].Source: must be set": func(_ *Job, g *TaskGroup, _ *Task) { g.Volumes = map[string]*VolumeRequest{"v": {Type: "host"}} },
		"job.group[g].Scaling.Max: must be at least Min (5), got 2": func(_ *Job, g *TaskGroup, _ *Task) {
			g.Scaling = &ScalingPolicy{Min: new(int64(5)), Max: new(int64(2))}
		},
		"job.group[g].Scaling: the group's Count 1 is not from Min 5":    func(_ *Job, g *TaskGroup, _ *Task) { g.Scaling = &ScalingPolicy{Min: new(int64(5))} },
		`job.group[g].service[web].PortLabel: the group has no port "x"`: func(_ *Job, g *TaskGroup, _ *Task) { g.Services[0].PortLabel = "x" },
		"job.group[g].service[web].Checks[0].Path: must be set for http": func(_ *Job, g *TaskGroup, _ *Task) { delete(g.Services[0].Checks[0], "Path") },
		`job.group[g].task[t].Env[A]: ${nodes.x}: there is no "nodes"`:   func(_ *Job, _ *TaskGroup, t *Task) { t.Env["A"] = "${nodes.x}" },
		"job.group[g].task[t].Env: the variables A, B need each other":   func(_ *Job, _ *TaskGroup, t *Task) { t.Env["B"] = `${env["A"]}` },
		`job.group[g].task[t].Config.args: ${nope.y}`:                    func(_ *Job, _ *TaskGroup, t *Task) { t.Config = map[string]any{"args": []any{"${nope.y}"}} },
		`job.group[g].Constraints[0].LTarget: ${nope.z}`: func(_ *Job, g *TaskGroup, _ *Task) {
			g.Constraints = []*Constraint{{LTarget: "${nope.z}", Operand: "is_set"}}
		},
		"job.group[g].task[t].LogConfig.MaxFiles: must be from 1 to 32768": func(_ *Job, _ *TaskGroup, t *Task) { t.LogConfig.MaxFiles = 1 << 62 },
		"job.group[g].task[t].Templates[0].Perms: must be octal": func(_ *Job, _ *TaskGroup, t *Task) {
			t.Templates = []*Template{{EmbeddedTmpl: "x", DestPath: "local/x", ChangeMode: "noop", Perms: "rw"}}
		},
		"job.group[g].task[t].Templates[0].ChangeScript.Command: must be": func(_ *Job, _ *TaskGroup, t *Task) {
			t.Templates = []*Template{{EmbeddedTmpl: "x", DestPath: "local/x", ChangeMode: "script"}}
		},
		"job.group[g].task[t].Resources: is too large":                   func(_ *Job, _ *TaskGroup, t *Task) { t.Resources.MemoryMaxMB = 1 << 40 },
		"job.group[g].Migrate.MaxParallel: must not be negative":         func(_ *Job, g *TaskGroup, _ *Task) { g.Migrate.MaxParallel = new(-1) },
		"job.group[g].port[http].Value: must be from 1 to 65535, got -1": func(_ *Job, g *TaskGroup, _ *Task) { g.Networks[0].DynamicPorts[0].Value = -1 },
		"job.group[g].Update.Canary: is a percentage of the nodes in a system job": func(j *Job, g *TaskGroup, _ *Task) {
			j.Type, g.Update.Canary = JobTypeSystem, 101
		},
		"job.group[g].EphemeralDisk.SizeMB: must be from 10 to 2147483647":      func(_ *Job, g *TaskGroup, _ *Task) { g.EphemeralDisk.SizeMB = 1 << 50 },
		"job.group[g].RestartPolicy: 9000000000000000000 attempts with a delay": func(_ *Job, g *TaskGroup, _ *Task) { g.RestartPolicy.Attempts = new(9_000_000_000_000_000_000) },
	}
	for want, spoil := range faults {
		j := valid()
		spoil(j, j.TaskGroups[0], j.TaskGroups[0].Tasks[0])
		err := j.Validate()
		require.ErrorContains(t, err, want)
		require.Equal(t, Invalid, CodeOf(err))
	}
	j := valid()
	j.Priority, j.TaskGroups[0].Tasks[0].Driver, j.TaskGroups[0].EphemeralDisk.SizeMB = 1000, "", 1
	err := j.Validate()
	for _, want := range []string{"job.Priority", "job.group[g].task[t].Driver", "job.group[g].EphemeralDisk.SizeMB"} {
		require.ErrorContains(t, err, want)
	}
}

// Blocks that are not for the job's type are refused, however little of them is given.
func TestRollOutIsForJobsThatStay(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{JobTypeBatch, JobTypeSysBatch, JobTypeSystem} {
		j := &Job{ID: "j", Type: kind, TaskGroups: []*TaskGroup{{
			Name: "g", Update: &UpdateStrategy{Canary: 1}, Migrate: &MigrateStrategy{}, Tasks: []*Task{{Name: "t", Driver: "fake"}},
		}}}
		j.Canonicalize()
		require.Equal(t, 1, *j.TaskGroups[0].Update.MaxParallel)
		require.ErrorContains(t, j.Validate(), "job.group[g].Migrate: only service jobs", kind)
		if kind != JobTypeSystem {
			require.ErrorContains(t, j.Validate(), "job.group[g].Update: only service and system jobs", kind)
		}
	}
}

func TestScalingDefaults(t *testing.T) {
	t.Parallel()
	j := valid()
	j.TaskGroups[0].Count, j.TaskGroups[0].Scaling = new(3), &ScalingPolicy{Max: new(int64(5))}
	j.Canonicalize()
	require.Equal(t, &ScalingPolicy{Min: new(int64(3)), Max: new(int64(5)), Enabled: new(true), Type: "horizontal"}, j.TaskGroups[0].Scaling)
	require.NoError(t, j.Validate())
}

func TestOlderDisconnectFieldsBecomeTheBlock(t *testing.T) {
	t.Parallel()
	j := valid()
	g := j.TaskGroups[0]
	g.MaxClientDisconnect, g.PreventRescheduleOnLost = new(time.Hour), true
	for range 2 {
		j.Canonicalize()
		require.Equal(t, &DisconnectStrategy{LostAfter: time.Hour, Replace: new(false), Reconcile: ReconcileBestScore}, g.Disconnect)
		require.NoError(t, j.Validate())
	}
}
