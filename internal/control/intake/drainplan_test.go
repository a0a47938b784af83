package intake

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/command"
)

// TestADrainIsTriedWithoutOne: what another node takes moves there, what is too much waits and says why, work that ends by itself may end,
// and nothing is changed.
func TestADrainIsTriedWithoutOne(t *testing.T) {
	b := setup(t)
	node := func(id string, memory int64) {
		b.propose(&command.RegisterNode{Node: &drover.Node{
			ID: id, Name: "name of " + id, Status: drover.NodeStatusReady, SchedulingEligibility: drover.NodeEligible,
			Datacenter: "dc1", NodePool: "default",
			Drivers: map[string]*drover.DriverInfo{"fake": {Detected: true, Healthy: true}},
			NodeResources: &drover.NodeResources{
				Cpu: drover.NodeCpuResources{CpuShares: 10000}, Memory: drover.NodeMemoryResources{MemoryMB: memory},
				Disk: drover.NodeDiskResources{DiskMB: 100000},
			},
		}})
	}
	node("goes", 4000)
	node("stays", 1300)
	for id, kind := range map[string]string{
		"web": drover.JobTypeService, "big": drover.JobTypeService, "sums": drover.JobTypeBatch, "agent": drover.JobTypeSystem,
	} {
		j := job(id, kind)
		if id == "web" || id == "big" {
			j.TaskGroups[0].Count = new(2)
		}
		if id == "web" {
			j.Priority = 80
		}
		b.register(j)
		kept := b.job(id)
		var placed []*drover.Allocation
		count := kept.TaskGroups[0].DesiredCount()
		if kind == drover.JobTypeSystem {
			count = 2
		}
		for i := range count {
			at := "goes"
			if kind == drover.JobTypeSystem && i == 1 {
				at = "stays"
			}
			placed = append(placed, &drover.Allocation{
				ID: id + string(rune('0'+i)), Namespace: "default", JobID: id, TaskGroup: "g", Name: drover.AllocationName(id, "g", i), NodeID: at,
				NodeName: "name of " + at, Job: kept, ClientStatus: drover.AllocClientRunning, DesiredStatus: drover.AllocDesiredRun,
				AllocatedResources: &drover.AllocatedResources{Tasks: map[string]*drover.AllocatedTaskResources{
					"t": {Cpu: drover.AllocatedCpuResources{CpuShares: 100}, Memory: drover.AllocatedMemoryResources{MemoryMB: 300}},
				}},
			})
		}
		b.propose(&command.ApplyPlans{Plans: []command.PlanCommit{{Job: kept, Placed: placed}}})
	}
	index := b.store.Index()
	plan := func(spec drover.DrainSpec) (map[string]string, drover.DrainPlan) {
		p, err := b.PlanDrain(t.Context(), "goes", spec)
		require.NoError(t, err)
		require.Equal(t, index, b.store.Index(), "it changes nothing")
		fates := map[string]string{}
		for _, m := range p.Moves {
			fates[m.AllocID] = m.Fate + " " + m.ToNodeID
		}
		return fates, p
	}
	fates, p := plan(drover.DrainSpec{})
	require.Equal(t, "name of goes", p.NodeName)
	require.Equal(t, "moves stays", fates["web0"], "%v", fates)
	require.Equal(t, "moves stays", fates["web1"], "of a higher priority")
	require.Equal(t, "ends ", fates["sums0"])
	require.Equal(t, "ends ", fates["agent0"])
	moved := 0
	for _, m := range p.Moves {
		if m.JobID == "big" && m.Fate == drover.DrainMoves {
			moved++
		}
		if m.Fate == drover.DrainWaits {
			require.NotEmpty(t, m.Why, m.AllocID)
		}
	}
	require.Equal(t, 1, moved, "room for three of 300 MB: %v", fates)
	fates, _ = plan(drover.DrainSpec{IgnoreSystemJobs: true})
	require.Equal(t, "stays ", fates["agent0"])
	_, err := b.PlanDrain(t.Context(), "nothing", drover.DrainSpec{})
	require.Equal(t, drover.NotFound, drover.CodeOf(err))
}

// TestAPlanOfADrainIsBounded: few are made at a time, those that wait are told after a while, and whoever left is not worked for.
func TestAPlanOfADrainIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := bundleIn(t)
		b.propose(&command.RegisterNode{Node: &drover.Node{ID: "n", Status: drover.NodeStatusReady, Datacenter: "dc1", NodePool: "default"}})
		for range maxDrainPlans {
			b.drains <- struct{}{}
		}
		begun := time.Now()
		_, err := b.PlanDrain(t.Context(), "n", drover.DrainSpec{})
		require.Equal(t, drover.Exhausted, drover.CodeOf(err))
		require.ErrorContains(t, err, "takes longer than 10s")
		require.Equal(t, drainPlanTime, time.Since(begun))
		left, leave := context.WithCancel(t.Context())
		leave()
		_, err = b.PlanDrain(left, "n", drover.DrainSpec{})
		require.Equal(t, drover.Canceled, drover.CodeOf(err))
		<-b.drains
		_, err = b.PlanDrain(t.Context(), "n", drover.DrainSpec{})
		require.NoError(t, err)
		require.Len(t, b.drains, maxDrainPlans-1, "its place is free again")
	})
}

// TestAPlanOfADrainEndsWithItsAsker: between two jobs.
func TestAPlanOfADrainEndsWithItsAsker(t *testing.T) {
	b := setup(t)
	b.propose(&command.RegisterNode{Node: &drover.Node{ID: "n", Status: drover.NodeStatusReady, Datacenter: "dc1", NodePool: "default"}})
	j := job("j", drover.JobTypeService)
	b.register(j)
	b.propose(&command.ApplyPlans{Plans: []command.PlanCommit{{Job: b.job("j"), Placed: []*drover.Allocation{{
		ID: "a", Namespace: "default", JobID: "j", TaskGroup: "g", Name: drover.AllocationName("j", "g", 0), NodeID: "n", Job: b.job("j"),
		ClientStatus: drover.AllocClientRunning, DesiredStatus: drover.AllocDesiredRun,
	}}}}})
	left, leave := context.WithCancel(t.Context())
	leave()
	for range 20 { // the place and the end of the context are there at once
		_, err := b.PlanDrain(left, "n", drover.DrainSpec{})
		require.Equal(t, drover.Canceled, drover.CodeOf(err))
	}
	require.Empty(t, b.drains)
}
