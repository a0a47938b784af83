package store_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/store"
)

func TestUnfinishedByNode(t *testing.T) {
	t.Parallel()
	s := store.New()
	put := func(index uint64, a *drover.Allocation) {
		a.Namespace, a.JobID = "default", "j"
		txn := s.Begin(index)
		txn.PutAllocation(a)
		txn.Commit()
	}
	put(1, &drover.Allocation{ID: "a", NodeID: "n", ClientStatus: drover.AllocClientRunning, AllocModifyIndex: 1})
	put(2, &drover.Allocation{ID: "b", NodeID: "n", ClientStatus: drover.AllocClientRunning, AllocModifyIndex: 2})
	put(3, &drover.Allocation{ID: "c", NodeID: "n2", ClientStatus: drover.AllocClientRunning, AllocModifyIndex: 3})
	require.Len(t, slices.Collect(s.Snapshot().UnfinishedByNode("n")), 2)
	put(4, &drover.Allocation{ID: "a", NodeID: "n", ClientStatus: drover.AllocClientLost, AllocModifyIndex: 4})
	snapshot := s.Snapshot()
	left := slices.Collect(snapshot.UnfinishedByNode("n"))
	require.Len(t, left, 1)
	require.Equal(t, "b", left[0].ID)
	require.Len(t, slices.Collect(snapshot.AllocationsByNode("n")), 2)
	require.Equal(t, uint64(4), snapshot.NodeChanged("n"), "the node hears of what control ended")
	put(5, &drover.Allocation{ID: "b", NodeID: "n", ClientStatus: drover.AllocClientComplete, AllocModifyIndex: 2})
	require.Equal(t, uint64(4), s.Snapshot().NodeChanged("n"), "but not of what it said itself")
	require.Zero(t, s.Snapshot().NodeChanged("nobody"))
}
