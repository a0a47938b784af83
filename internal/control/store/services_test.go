package store

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/tables"
	"github.com/drover-project/drover/service"
)

// served is a job with a service, the node that it runs on, and its allocation, which does not run yet.
func served() (*drover.Job, *drover.Node, *drover.Allocation) {
	job := &drover.Job{ID: "j", Namespace: "team", TaskGroups: []*drover.TaskGroup{{
		Name: "g", Services: []*service.Service{{Name: "web", PortLabel: "8080", Tags: []string{"${meta.rack}"}}},
		Tasks: []*drover.Task{{Name: "t", Driver: "fake"}},
	}}}
	job.Canonicalize()
	node := &drover.Node{
		ID: "n1", Datacenter: "dc1", Meta: map[string]string{"rack": "r1"},
		Attributes: map[string]string{"unique.network.ip-address": "192.0.2.1"},
	}
	alloc := &drover.Allocation{
		ID: "a1", Namespace: "team", JobID: "j", Job: job, TaskGroup: "g", NodeID: "n1", DesiredStatus: drover.AllocDesiredRun,
		ClientStatus: drover.AllocClientPending,
	}
	return job, node, alloc
}

// Registrations follow from their allocations: they come and go with them, wake who watches them, and are the same after a
// restore.
func TestRegistrationsFollowFromAllocations(t *testing.T) {
	t.Parallel()
	s := New()
	job, node, alloc := served()
	index := uint64(10)
	change := func(f func(*Txn)) *Txn {
		tx := s.Begin(index)
		index++
		f(tx)
		tx.Commit()
		return tx
	}
	found := func(namespace, name string) []*service.Registration {
		return slices.Collect(s.Snapshot().Registrations(namespace, name))
	}
	change(func(tx *Txn) { tx.PutNode(node); tx.PutJob(job); tx.PutAllocation(alloc) })
	require.Empty(t, found("*", ""))
	require.Zero(t, s.Snapshot().TableIndex(tables.Services))

	of, other := s.Watch(tables.Services, tables.JobKey("team", "web")), s.Watch(tables.Services, tables.JobKey("default", "web"))
	running := new(*alloc)
	running.ClientStatus = drover.AllocClientRunning
	tx := change(func(tx *Txn) { tx.PutAllocation(running) })
	made, gone := tx.ServiceChanges()
	require.Len(t, made, 1)
	require.Empty(t, gone)
	<-of
	select {
	case <-other:
		t.Fatal("another namespace's service did not change")
	default:
	}
	require.Equal(t, made, found("team", "web"))
	require.Equal(t, made, found("team", ""))
	require.Equal(t, made, found("*", "web"))
	require.Equal(t, made, slices.Collect(s.Snapshot().RegistrationsOf("a1")))
	require.Empty(t, found("default", "web"))
	require.Empty(t, found("team", "we"), "a name is no prefix")
	require.Equal(t, []string{"r1"}, made[0].Tags)
	require.Equal(t, uint64(11), s.Snapshot().TableIndex(tables.Services))

	again := new(*running)
	again.ModifyTime = 5
	tx = change(func(tx *Txn) { tx.PutAllocation(again) })
	made, gone = tx.ServiceChanges()
	require.Empty(t, append(made, gone...), "nothing that is registered changed")
	require.Equal(t, uint64(11), s.Snapshot().TableIndex(tables.Services))

	moved := new(*node)
	moved.Meta = map[string]string{"rack": "r2"}
	change(func(tx *Txn) { tx.PutNode(moved) })
	require.Equal(t, []string{"r2"}, found("team", "web")[0].Tags)
	want := found("*", "")
	restored := New()
	rx := restored.BeginRestore(50)
	rx.RestoreNode(moved)
	rx.RestoreJob(job)
	rx.RestoreAllocation(again)
	rx.Commit()
	require.Equal(t, want, slices.Collect(restored.Snapshot().Registrations("*", "")))

	stopped := new(*again)
	stopped.DesiredStatus = drover.AllocDesiredStop
	tx = change(func(tx *Txn) { tx.PutAllocation(stopped) })
	_, gone = tx.ServiceChanges()
	require.Len(t, gone, 1)
	require.Empty(t, found("*", ""))

	change(func(tx *Txn) { tx.PutAllocation(again) })
	change(func(tx *Txn) { tx.DeleteAllocation(again) })
	require.Empty(t, found("*", ""))
}
