package nomad_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/network"
	"github.com/drover-project/drover/service"
)

// serve puts allocations with a service into the store.
func (w *world) serve(namespace, job string, count int, tags ...string) {
	w.t.Helper()
	j := &drover.Job{ID: job, Namespace: namespace, TaskGroups: []*drover.TaskGroup{{
		Name: "g", Services: []*service.Service{{Name: job + "-svc", PortLabel: "8080", Tags: tags}},
		Tasks: []*drover.Task{{Name: "t", Driver: "fake"}},
	}}}
	j.Canonicalize()
	tx := w.store.Begin(w.store.Snapshot().Index() + 1)
	tx.PutJob(j)
	for i := range count {
		tx.PutAllocation(&drover.Allocation{
			ID: fmt.Sprintf("%08d-%s", i, job), Namespace: namespace, JobID: job, Job: j, TaskGroup: "g", NodeID: nodeID,
			DesiredStatus: drover.AllocDesiredRun, ClientStatus: drover.AllocClientRunning, NetworkStatus: &network.Status{},
		})
	}
	n := new(*w.store.Snapshot().Node(nodeID))
	n.Attributes = map[string]string{"unique.network.ip-address": "192.0.2.1"}
	tx.PutNode(n)
	tx.Commit()
}

// Nomad's own client reads what is served where.
func TestServices(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	list, meta, err := w.client.Services().List(nil)
	require.NoError(t, err)
	require.Empty(t, list)

	woken := make(chan []*api.ServiceRegistrationListStub, 1)
	w.serve("default", "a", 5, "x", "y")
	seen := max(meta.LastIndex, w.store.Snapshot().Index())
	go func() { // ends with the answer
		list, _, err := w.client.Services().List(&api.QueryOptions{WaitIndex: seen, WaitTime: time.Minute})
		if err == nil {
			woken <- list
		}
	}()
	w.serve("default", "b", 1, "z")
	w.serve("team", "c", 1)
	require.NotEmpty(t, <-woken, "who waits is told")

	list, _, err = w.client.Services().List(&api.QueryOptions{Namespace: "*"})
	require.NoError(t, err)
	require.Equal(t, []*api.ServiceRegistrationListStub{
		{Namespace: "default", Services: []*api.ServiceRegistrationStub{
			{ServiceName: "a-svc", Tags: []string{"x", "y"}}, {ServiceName: "b-svc", Tags: []string{"z"}},
		}},
		{Namespace: "team", Services: []*api.ServiceRegistrationStub{{ServiceName: "c-svc", Tags: []string{}}}},
	}, list)

	all, _, err := w.client.Services().Get("a-svc", nil)
	require.NoError(t, err)
	require.Len(t, all, 5)
	require.Equal(t, "192.0.2.1", all[0].Address)
	require.Equal(t, 8080, all[0].Port)
	none, _, err := w.client.Services().Get("c-svc", nil)
	require.NoError(t, err)
	require.Empty(t, none)

	choose := func(how string) (ids []string) {
		found, _, err := w.client.Services().Get("a-svc", &api.QueryOptions{Params: map[string]string{"choose": how}})
		require.NoError(t, err)
		for _, r := range found {
			ids = append(ids, r.ID)
		}
		return ids
	}
	require.Len(t, choose("2|k"), 2)
	require.Equal(t, choose("2|k"), choose("2|k"))
	require.Subset(t, choose("3|k"), choose("2|k"))
	require.Len(t, choose("9|k"), 5)
	_, _, err = w.client.Services().Get("a-svc", &api.QueryOptions{Params: map[string]string{"choose": "0|k"}})
	require.ErrorContains(t, err, "choose: must be a number and a key")

	of, _, err := w.client.Allocations().Services(all[3].AllocID, nil)
	require.NoError(t, err)
	require.Equal(t, all[3:4], of)
	ofJob, _, err := w.client.Jobs().Services("a", nil)
	require.NoError(t, err)
	require.Len(t, ofJob, 5)

	_, err = w.client.Services().Delete("a-svc", all[0].ID, nil)
	require.ErrorContains(t, err, "stop the allocation")
	_, err = w.client.Services().Delete("a-svc", "nope", nil)
	require.ErrorContains(t, err, "service registration not found")

	found, err := w.client.Allocations().Checks(all[0].AllocID, nil)
	require.NoError(t, err)
	require.Equal(t, "success", found["c1"].Status)
}
