package store

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/tables"
)

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func alloc(id, job, node string) *drover.Allocation {
	return &drover.Allocation{ID: id, Namespace: "default", JobID: job, NodeID: node, TaskGroup: "g", ClientStatus: "pending"}
}

func TestBuiltins(t *testing.T) {
	t.Parallel()
	s := New().Snapshot()
	require.Zero(t, s.Index())
	require.NotNil(t, s.Namespace("default"))
	require.NotNil(t, s.NodePool("default"))
	require.NotNil(t, s.NodePool("all"))
	require.Equal(t, "binpack", s.SchedulerConfig().SchedulerAlgorithm)
	require.Zero(t, s.TableIndex(tables.Jobs))
}

func TestASnapshotDoesNotChange(t *testing.T) {
	t.Parallel()
	s := New()
	tx := s.Begin(3)
	tx.PutJob(&drover.Job{ID: "a", Namespace: "default"})
	tx.PutJob(&drover.Job{ID: "ab", Namespace: "other"})
	before := s.Snapshot()
	after := tx.Commit()
	require.Nil(t, before.Job("default", "a"))
	require.NotNil(t, after.Job("default", "a"))
	require.Equal(t, uint64(3), after.TableIndex(tables.Jobs))
	require.Zero(t, after.TableIndex(tables.Nodes))
	require.Len(t, slices.Collect(after.Jobs("*", "a")), 2)
	require.Len(t, slices.Collect(after.Jobs("default", "a")), 1)
	require.Empty(t, slices.Collect(after.AllocationsByJob("default", "a")))
	tx = s.Begin(4)
	tx.DeleteJob(tx.Job("default", "a"))
	tx.Abort()
	require.NotNil(t, s.Snapshot().Job("default", "a"))
	require.Equal(t, uint64(3), s.Index())
}

func TestWatches(t *testing.T) {
	t.Parallel()
	s := New()
	put := func(a *drover.Allocation) {
		tx := s.Begin(s.Index() + 1)
		tx.PutAllocation(a)
		tx.Commit()
	}
	node, other := s.Watch(tables.NodeAllocs, "n1"), s.Watch(tables.NodeAllocs, "n2")
	row, table, any := s.Watch(tables.Allocs, "a"), s.Watch(tables.Allocs, ""), s.WatchAny()
	job, nodes := s.Watch(tables.JobAllocs, tables.JobKey("default", "j")), s.Watch(tables.Nodes, "")
	put(alloc("a", "j", "n1"))
	for _, c := range []<-chan struct{}{node, row, table, any, job} {
		require.True(t, closed(c))
	}
	require.False(t, closed(other))
	require.False(t, closed(nodes))

	node = s.Watch(tables.NodeAllocs, "n1")
	observed := alloc("a", "j", "n1")
	observed.ClientStatus = drover.AllocClientRunning
	put(observed)
	require.False(t, closed(node), "a node's own update does not echo")
	stopped := *observed
	stopped.AllocModifyIndex = 9
	put(&stopped)
	require.True(t, closed(node))

	tx := s.BeginRestore(50)
	tx.Commit()
	require.True(t, closed(other), "a restore wakes all")
	require.Nil(t, s.Snapshot().Allocation("a"))
	require.Equal(t, uint64(50), s.Index())
}

func TestActiveAllocations(t *testing.T) {
	t.Parallel()
	s := New()
	put := func(change func(*drover.Allocation)) []*drover.Allocation {
		a := alloc("a", "j", "n1")
		change(a)
		tx := s.Begin(s.Index() + 1)
		tx.PutAllocation(a)
		return slices.Collect(tx.Commit().ActiveAllocationsByJob("default", "j"))
	}
	require.Len(t, put(func(*drover.Allocation) {}), 1)
	require.Len(t, put(func(a *drover.Allocation) { a.ClientStatus = "failed" }), 1, "it may be rescheduled")
	require.Len(t, put(func(a *drover.Allocation) { a.DesiredStatus = "stop" }), 1, "it still runs")
	require.Empty(t, put(func(a *drover.Allocation) { a.ClientStatus, a.DesiredStatus = "complete", "stop" }))
	require.Empty(t, put(func(a *drover.Allocation) { a.ClientStatus, a.Claim = "failed", &drover.Claim{} }))
	require.Len(t, slices.Collect(s.Snapshot().AllocationsByJob("default", "j")), 1)
}

func TestNodesUsedIsUsedOfEachNode(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		s := New()
		for i := range rapid.IntRange(0, 20).Draw(rt, "writes") {
			tx := s.Begin(uint64(i + 1))
			n := fmt.Sprintf("n%d", rapid.IntRange(0, 5).Draw(rt, "node"))
			if rapid.Bool().Draw(rt, "is node") {
				tx.PutNode(&drover.Node{ID: n})
			} else {
				a := alloc(fmt.Sprint(i), "j", n)
				a.AllocatedResources = &drover.AllocatedResources{Shared: drover.AllocatedSharedResources{DiskMB: int64(i)}}
				tx.PutAllocation(a)
			}
			tx.Commit()
		}
		snap := s.Snapshot()
		var ids []string
		for n, used := range snap.NodesUsed() {
			require.Equal(t, snap.Used(n.ID), used)
			ids = append(ids, n.ID)
		}
		var want []string
		for n := range snap.Nodes("") {
			want = append(want, n.ID)
		}
		require.Equal(t, want, ids)
	})
}
