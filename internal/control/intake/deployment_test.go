package intake

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/command"
)

// versions registers job "j" as many times as there are counts, and marks the first one stable.
func (b *bundle) versions(counts ...int) {
	b.t.Helper()
	for _, n := range counts {
		j := job("j", drover.JobTypeService)
		j.TaskGroups[0].Count = new(n)
		b.register(j)
	}
	_, err := b.SetJobStable(b.t.Context(), "default", "j", 0, true)
	require.NoError(b.t, err)
}

// deploy starts deployment "d" of the job's version, with allocation "a" in it.
func (b *bundle) deploy(version uint64, s drover.DeploymentState) {
	b.t.Helper()
	b.propose(&command.UpsertDeployment{Deployment: &drover.Deployment{
		ID: "d", Namespace: "default", JobID: "j", JobVersion: version, JobCreateIndex: b.job("j").CreateIndex,
		Status: drover.DeploymentRunning, TaskGroups: map[string]*drover.DeploymentState{"g": &s},
	}})
	b.propose(&command.ApplyPlans{Plans: []command.PlanCommit{{Job: b.job("j"), Placed: []*drover.Allocation{{
		ID: "a", Namespace: "default", JobID: "j", TaskGroup: "g", Name: "j.g[0]", NodeID: "n", DeploymentID: "d",
	}}}}})
}

func TestFailedDeploymentsGoBack(t *testing.T) {
	for _, c := range []struct {
		name     string
		counts   []int
		stable   []uint64 // beside version 0
		unstable []uint64
		version  uint64
		revert   bool
		why      string
		back     bool
	}{
		{
			name: "to the stable version", counts: []int{1, 2}, version: 1, revert: true,
			why: "Deployment marked as failed - rolling back to job version 0", back: true,
		},
		{name: "not without auto_revert", counts: []int{1, 2}, version: 1, why: "Deployment marked as failed"},
		{
			name: "not without a stable version", counts: []int{1, 2}, unstable: []uint64{0}, version: 1, revert: true,
			why: "Deployment marked as failed - no stable job version to auto revert to",
		},
		{
			name: "not to what it is already", counts: []int{1, 2, 1}, version: 2, revert: true,
			why: "Deployment marked as failed - not rolling back to stable job version 0 as current job has same specification",
		},
		{
			name: "not where it is the stable one itself", counts: []int{1, 2}, stable: []uint64{1}, version: 1, revert: true,
			why: "Deployment marked as failed - not rolling back to stable job version 1 as current job has same specification",
		},
		{name: "not under a newer version", counts: []int{1, 2, 3}, version: 1, revert: true, why: "Deployment marked as failed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := setup(t)
			b.versions(c.counts...)
			for _, v := range c.stable {
				_, err := b.SetJobStable(t.Context(), "default", "j", v, true)
				require.NoError(t, err)
			}
			for _, v := range c.unstable {
				_, err := b.SetJobStable(t.Context(), "default", "j", v, false)
				require.NoError(t, err)
			}
			before := b.job("j").Version
			b.deploy(c.version, drover.DeploymentState{AutoRevert: c.revert})
			o, err := b.FailDeployment(t.Context(), "d")
			require.NoError(t, err)
			d := b.store.Snapshot().Deployment("d")
			require.Equal(t, drover.DeploymentFailed, d.Status)
			require.Equal(t, c.why, d.StatusDescription)
			require.Equal(t, c.back, o.RevertedJobVersion != nil)
			if c.back {
				before++
			}
			require.Equal(t, before, b.job("j").Version)
		})
	}
}

// What a person calls unhealthy fails the deployment at once, whatever the policies say.
func TestUnhealthyByHandFailsTheDeployment(t *testing.T) {
	b := setup(t)
	b.versions(1, 2)
	b.deploy(1, drover.DeploymentState{AutoRevert: true})
	o, err := b.SetAllocHealth(t.Context(), "d", nil, []string{"a"})
	require.NoError(t, err)
	require.EqualValues(t, 0, *o.RevertedJobVersion)
	d := b.store.Snapshot().Deployment("d")
	require.Equal(t, "Failed due to unhealthy allocations - rolling back to job version 0", d.StatusDescription)
	require.EqualValues(t, 2, b.job("j").Version)
}

func TestHealthyByHandDoesNot(t *testing.T) {
	b := setup(t)
	b.versions(1, 2)
	b.deploy(1, drover.DeploymentState{AutoRevert: true})
	_, err := b.SetAllocHealth(t.Context(), "d", []string{"a"}, nil)
	require.NoError(t, err)
	require.Equal(t, drover.DeploymentRunning, b.store.Snapshot().Deployment("d").Status)
}
