package intake

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/constraint"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/jobdiff"
	"github.com/drover-project/drover/network"
	"github.com/drover-project/drover/workload"
)

func TestPlanChangesNothing(t *testing.T) {
	b := setup(t)
	b.propose(&command.RegisterNode{Node: &drover.Node{
		ID: "n", Name: "one", Status: drover.NodeStatusReady, SchedulingEligibility: drover.NodeEligible, Datacenter: "dc1", NodePool: "default",
		Drivers: map[string]*drover.DriverInfo{"fake": {Detected: true, Healthy: true}},
		NodeResources: &drover.NodeResources{
			Cpu: drover.NodeCpuResources{CpuShares: 1000}, Memory: drover.NodeMemoryResources{MemoryMB: 1000},
			Disk: drover.NodeDiskResources{DiskMB: 10000},
		},
	}})
	index := b.store.Index()
	j := job("j", drover.JobTypeBatch)
	j.TaskGroups[0].Count = new(5)
	p, err := b.PlanJob(t.Context(), j, true)
	require.NoError(t, err)
	require.Equal(t, index, b.store.Index())
	require.EqualValues(t, 5, p.Annotations.DesiredTGUpdates["g"].Place)
	require.Equal(t, 1, len(p.FailedTGAllocs), "room for three of 300 MB")
	require.Equal(t, []drover.PlannedPlacement{{Group: "g", NodeID: "n", NodeName: "one", Count: 3}}, p.Placements)
	d := p.Diff
	require.Equal(t, jobdiff.Added, d.Type)
	require.Equal(t, map[string]uint64{"create": 5}, d.TaskGroups[0].Updates)

	b.register(j)
	p, err = b.PlanJob(t.Context(), j, true)
	require.NoError(t, err)
	require.Equal(t, jobdiff.None, p.Diff.Type)
	require.Equal(t, b.job("j").JobModifyIndex, p.JobModifyIndex)

	_, err = b.PlanJob(t.Context(), &drover.Job{ID: "bad job"}, false)
	code(t, drover.Invalid, err, "job.ID")
}

// twoJobs are a job and what it was changed into.
func twoJobs() (old, now *drover.Job) {
	old, now = job("j", drover.JobTypeBatch), job("j", drover.JobTypeBatch)
	for _, j := range []*drover.Job{old, now} {
		j.TaskGroups[0].Tasks[0].Config = map[string]any{"command": "/bin/a", "args": []any{"1"}}
		j.Canonicalize()
	}
	now.Priority = 70
	now.Meta = map[string]string{"k": "v"}
	now.Datacenters = []string{"*", "dc2"}
	now.TaskGroups[0].Count = new(3)
	now.TaskGroups[0].Tasks[0].Config["command"] = "/bin/b"
	now.TaskGroups[0].Tasks[0].Resources.CPU = 200
	now.Constraints = []*constraint.Constraint{{LTarget: "${attr.os}", RTarget: "linux", Operand: "="}}
	now.TaskGroups = append(now.TaskGroups, &drover.TaskGroup{Name: "new"})
	now.Version, now.ModifyIndex = 9, 9
	return old, now
}

// nest gives a job values that lie deeper.
func nest(j *drover.Job) {
	j.TaskGroups[0].Tasks[0].Config["mount"] = []any{map[string]any{"type": "bind"}}
	j.TaskGroups[0].Tasks[0].Config["args"] = []any{"1", "2"}
	j.TaskGroups[0].Networks = []*network.Resource{{DynamicPorts: []network.Port{{Label: "http"}}}}
	j.TaskGroups[0].Tasks[0].Identities = []*workload.Identity{{Name: "i"}}
}

func field(kind, name, a, b string) *jobdiff.Field {
	return &jobdiff.Field{Type: kind, Name: name, Old: a, New: b}
}

func TestDiff(t *testing.T) {
	t.Parallel()
	old, now := twoJobs()
	want := &jobdiff.Job{
		Type: jobdiff.Edited, ID: "j",
		Fields: []*jobdiff.Field{
			field(jobdiff.Edited, "Priority", "50", "70"), field(jobdiff.Added, "Meta[k]", "", "v"),
		},
		Objects: []*jobdiff.Object{
			{Type: jobdiff.Added, Name: "Datacenters", Fields: []*jobdiff.Field{field(jobdiff.Added, "Datacenters", "", "dc2")}},
			{Type: jobdiff.Added, Name: "Constraint", Fields: []*jobdiff.Field{
				field(jobdiff.Added, "LTarget", "", "${attr.os}"), field(jobdiff.Added, "RTarget", "", "linux"),
				field(jobdiff.Added, "Operand", "", "="),
			}},
		},
		TaskGroups: []*jobdiff.Group{
			{
				Type: jobdiff.Edited, Name: "g", Fields: []*jobdiff.Field{field(jobdiff.Edited, "Count", "1", "3")},
				Tasks: []*jobdiff.Task{{
					Type: jobdiff.Edited, Name: "t",
					Objects: []*jobdiff.Object{
						{Type: jobdiff.Edited, Name: "Config", Fields: []*jobdiff.Field{field(jobdiff.Edited, "command", "/bin/a", "/bin/b")}},
						{Type: jobdiff.Edited, Name: "Resources", Fields: []*jobdiff.Field{field(jobdiff.Edited, "CPU", "100", "200")}},
					},
				}},
			},
		},
	}
	got := Diff(old, now)
	require.Len(t, got.TaskGroups, 2)
	require.Equal(t, jobdiff.Added, got.TaskGroups[1].Type)
	got.TaskGroups = got.TaskGroups[:1]
	if d := cmp.Diff(want, got); d != "" {
		t.Fatal(d)
	}
	require.Equal(t, jobdiff.Deleted, Diff(old, nil).Type)
}

// Free-form values are flat, and ports have their kind.
func TestDiffOfFreeFormValues(t *testing.T) {
	t.Parallel()
	old, now := twoJobs()
	nest(now)
	g := Diff(old, now).TaskGroups[0]
	require.Equal(t, []*jobdiff.Field{
		field(jobdiff.Added, "args[1]", "", "2"), field(jobdiff.Edited, "command", "/bin/a", "/bin/b"),
		field(jobdiff.Added, "mount[0][type]", "", "bind"),
	}, g.Tasks[0].Objects[0].Fields)
	require.Equal(t, "Dynamic Port", g.Objects[0].Objects[0].Name)
	require.Equal(t, "Identity", g.Tasks[0].Objects[2].Name)
}

// All of a new job is added.
func TestDiffOfANewJob(t *testing.T) {
	t.Parallel()
	_, now := twoJobs()
	nest(now)
	kinds := map[string]bool{}
	var walk func(fields []*jobdiff.Field, objects []*jobdiff.Object)
	walk = func(fields []*jobdiff.Field, objects []*jobdiff.Object) {
		for _, f := range fields {
			kinds[f.Type] = true
		}
		for _, o := range objects {
			kinds[o.Type] = true
			walk(o.Fields, o.Objects)
		}
	}
	fresh := Diff(nil, now)
	walk(fresh.Fields, fresh.Objects)
	for _, g := range fresh.TaskGroups {
		walk(g.Fields, g.Objects)
		for _, task := range g.Tasks {
			walk(task.Fields, task.Objects)
		}
	}
	require.Equal(t, map[string]bool{jobdiff.Added: true}, kinds)
}

func TestNextLaunch(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 28, 23, 30, 0, 0, time.UTC)
	p := &drover.PeriodicConfig{Specs: []string{"0 12 * * *", "0 3 * * *"}, TimeZone: "Europe/Berlin", SpecType: "cron"}
	require.Equal(t, time.Date(2026, 3, 29, 1, 0, 0, 0, time.UTC), NextLaunch(p, at).UTC(), "summer time began at two")
	p.Enabled = new(false)
	require.True(t, NextLaunch(p, at).IsZero())
}
