package nodes

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/exchange"
)

// A node gets the data of what its own allocation replaces, and nothing else.
func TestWhoseDataANodeMayHave(t *testing.T) {
	t.Parallel()
	migrates := &drover.Job{Namespace: "default", ID: "j", TaskGroups: []*drover.TaskGroup{
		{Name: "g", EphemeralDisk: &drover.EphemeralDisk{Migrate: true}}, {Name: "stays", EphemeralDisk: &drover.EphemeralDisk{Sticky: true}},
	}}
	s := store.New()
	txn := s.Begin(1)
	put := func(id, node, group, previous string, edit func(*drover.Allocation)) {
		a := &drover.Allocation{
			ID: id, Namespace: "default", JobID: "j", Job: migrates, TaskGroup: group, NodeID: node, PreviousAllocation: previous,
			DesiredStatus: drover.AllocDesiredRun, ClientStatus: drover.AllocClientPending,
		}
		if edit != nil {
			edit(a)
		}
		txn.PutAllocation(a)
	}
	put("old", "n0", "g", "", nil)
	put("new", "n1", "g", "old", nil)
	put("over", "n1", "g", "old", func(a *drover.Allocation) { a.ClientStatus = drover.AllocClientComplete })
	put("stopped", "n1", "g", "old", func(a *drover.Allocation) { a.DesiredStatus = drover.AllocDesiredStop })
	put("first", "n1", "g", "", nil)
	put("orphan", "n1", "g", "gone", nil)
	put("other group", "n1", "stays", "old", nil)
	put("strange", "n1", "g", "other", nil)
	put("other", "n0", "g", "", func(a *drover.Allocation) { a.JobID, a.Job = "k", nil })
	txn.Commit()
	for _, c := range []struct {
		node, alloc string
		want        drover.Code
	}{
		{"n2", "new", drover.Forbidden},
		{"n0", "old", drover.NotFound},
		{"n1", "old", drover.Forbidden},
		{"n1", "none", drover.Forbidden},
		{"n1", "over", drover.Forbidden},
		{"n1", "stopped", drover.Forbidden},
		{"n1", "first", drover.NotFound},
		{"n1", "orphan", drover.NotFound},
		{"n1", "other group", drover.Forbidden},
		{"n1", "strange", drover.Forbidden},
	} {
		_, err := predecessor(s.Snapshot(), c.node, c.alloc)
		require.Equal(t, c.want, drover.CodeOf(err), "%s of %s: %v", c.alloc, c.node, err)
	}
	a, err := predecessor(s.Snapshot(), "n1", "new")
	require.NoError(t, err)
	require.Equal(t, "old", a.ID)
}

// What replaces an allocation of a disconnected node starts with an empty disk: nobody knows when that node comes back.
func TestADisconnectedNodeIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	leader := newTown(t).list[0]
	leader.deps.Workloads = func(string) (exchange.Workloads, error) {
		return nil, drover.Errorf(drover.Unavailable, "it was asked")
	}
	put := func(index uint64, id, node, previous, status string) {
		txn := leader.store.Begin(index)
		txn.PutAllocation(&drover.Allocation{
			ID: id, Namespace: "default", JobID: "j", TaskGroup: "g", NodeID: node, PreviousAllocation: previous,
			DesiredStatus: drover.AllocDesiredRun, ClientStatus: status, Job: &drover.Job{
				Namespace: "default", ID: "j", TaskGroups: []*drover.TaskGroup{{Name: "g", EphemeralDisk: &drover.EphemeralDisk{Migrate: true}}},
			},
		})
		txn.Commit()
	}
	put(1, "old", "n0", "", drover.AllocClientRunning)
	put(2, "new", "n1", "old", drover.AllocClientPending)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	fetched := make(chan error, 1)
	go func() { fetched <- leader.Fetch(ctx, "n1", "new", io.Discard) }() // ends with ctx
	put(3, "old", "n0", "", drover.AllocClientUnknown)
	err := <-fetched
	require.Equal(t, drover.NotFound, drover.CodeOf(err), "%v", err)
	require.ErrorContains(t, err, "disconnected")
	put(4, "old", "n0", "", drover.AllocClientLost)
	for i, c := range []struct {
		status, says string
		code         drover.Code
	}{
		{drover.NodeStatusDown, "gone or down", drover.NotFound},  // so nobody tries again
		{drover.NodeStatusReady, "it was asked", drover.Internal}, // a node leaves a server that is unavailable, and all its calls break
	} {
		txn := leader.store.Begin(uint64(5 + i))
		txn.PutNode(&drover.Node{ID: "n0", Status: c.status})
		txn.Commit()
		err = leader.Fetch(ctx, "n1", "new", io.Discard)
		require.ErrorContains(t, err, c.says)
		require.Equal(t, c.code, drover.CodeOf(err), "%v", err)
	}
}
