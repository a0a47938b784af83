package leader_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/leader"
	"github.com/drover-project/drover/internal/control/store"
)

// What replaces an allocation of another version needs less room than it asks for. Its blocked evaluation used not to
// be woken by room that was enough for that.
func TestAskOfAReplacement(t *testing.T) {
	t.Parallel()
	held := func(cpu int64) *drover.AllocatedResources {
		r := &drover.AllocatedResources{Tasks: map[string]*drover.AllocatedTaskResources{"t": {}}}
		r.Tasks["t"].Cpu.CpuShares = cpu
		return r
	}
	st := store.New()
	txn := st.Begin(1)
	old, now := testJob("j", drover.JobTypeService, 2), testJob("j", drover.JobTypeService, 2)
	old.Canonicalize()
	now.Canonicalize()
	now.Version = 1
	old.TaskGroups[0].Tasks[0].Resources.CPU, now.TaskGroups[0].Tasks[0].Resources.CPU = 300, 500
	txn.PutJob(now)
	txn.PutAllocation(&drover.Allocation{
		ID: "a", Namespace: now.Namespace, JobID: "j", Job: old, TaskGroup: now.TaskGroups[0].Name, NodeID: "n",
		DesiredStatus: drover.AllocDesiredRun, ClientStatus: drover.AllocClientRunning, AllocatedResources: held(300),
	})
	txn.Commit()
	e := &drover.Evaluation{Namespace: now.Namespace, JobID: "j"}
	require.EqualValues(t, 200, leader.Ask(st.Snapshot(), e).CPU)
}

// The scheduler places the stable version while the newest one is not proven, and that may ask for less.
func TestAskOfAStableVersion(t *testing.T) {
	t.Parallel()
	st := store.New()
	for version, cpu := range []int{474, 624} {
		txn := st.Begin(uint64(version + 1))
		j := testJob("j", drover.JobTypeService, 2)
		j.Canonicalize()
		j.Version, j.Stable = uint64(version), version == 0
		j.TaskGroups[0].Tasks[0].Resources.CPU = cpu
		txn.PutJob(j)
		txn.Commit()
	}
	s := st.Snapshot()
	require.EqualValues(t, 474, leader.Ask(s, &drover.Evaluation{Namespace: s.Job("default", "j").Namespace, JobID: "j"}).CPU)
}

// Without a stable version the scheduler places the newest older one that runs. Seed 9531 of the simulation: 613 were free,
// the version that runs asks 354 and the new one 1048, and nobody looked.
func TestAskOfAVersionThatRuns(t *testing.T) {
	t.Parallel()
	st := store.New()
	txn := st.Begin(1)
	old, now := testJob("j", drover.JobTypeService, 2), testJob("j", drover.JobTypeService, 2)
	old.Canonicalize()
	now.Canonicalize()
	now.Version = 1
	old.TaskGroups[0].Tasks[0].Resources.CPU, now.TaskGroups[0].Tasks[0].Resources.CPU = 354, 1048
	txn.PutJob(now)
	txn.PutAllocation(&drover.Allocation{
		ID: "a", Namespace: now.Namespace, JobID: "j", Job: old, TaskGroup: now.TaskGroups[0].Name, NodeID: "n",
		DesiredStatus: drover.AllocDesiredRun, ClientStatus: drover.AllocClientRunning,
		AllocatedResources: &drover.AllocatedResources{Tasks: map[string]*drover.AllocatedTaskResources{
			"t": {Cpu: drover.AllocatedCpuResources{CpuShares: 354}},
		}},
	})
	txn.Commit()
	e := &drover.Evaluation{Namespace: now.Namespace, JobID: "j"}
	require.EqualValues(t, 354, leader.Ask(st.Snapshot(), e).CPU)

	txn = st.Begin(2) // one of an earlier job of this name is never placed again
	purged := *old
	purged.CreateIndex = now.CreateIndex + 7
	purged.TaskGroups = []*drover.TaskGroup{{Name: now.TaskGroups[0].Name}}
	a := *st.Snapshot().Allocation("a")
	a.Job = &purged
	txn.PutAllocation(&a)
	txn.Commit()
	require.EqualValues(t, 694, leader.Ask(st.Snapshot(), e).CPU)
}
