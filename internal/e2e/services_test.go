package e2e

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"
)

// A service is found by its name while its task runs, and is gone as soon as the task is to stop. Its rollout waits for its check.
// All of that is seen with the unmodified official client.
func TestAServiceIsFoundAndChecked(t *testing.T) {
	t.Parallel()
	var ready atomic.Bool
	probed := make(chan struct{}, 1000)
	listener, err := net.Listen("tcp", ":0") // the check goes to the node's address
	require.NoError(t, err)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !ready.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		probed <- struct{}{}
	}))
	require.NoError(t, server.Listener.Close())
	server.Listener = listener
	server.Start()
	defer server.Close()

	c := dev(t).nomad()
	job := rawJob("web", "service", "/bin/sleep", "1000")
	group := job.TaskGroups[0]
	group.Update = &api.UpdateStrategy{MinHealthyTime: new(10 * time.Millisecond), HealthyDeadline: new(time.Minute)}
	group.Services = []*api.Service{{
		Name: "web", PortLabel: strconv.Itoa(listener.Addr().(*net.TCPAddr).Port), Tags: []string{"at-${NOMAD_ALLOC_INDEX}"},
		Checks: []api.ServiceCheck{{Type: "http", Path: "/up", Interval: time.Second, Timeout: time.Second}},
	}}
	reg, _, err := c.Jobs().Register(job, nil)
	require.NoError(t, err)
	require.Empty(t, reg.Warnings)

	found := services(t, c, 1)[0]
	require.Equal(t, []string{"at-0"}, found.Tags)
	for range 2 {
		<-probed
	}
	statuses, err := c.Allocations().Checks(found.AllocID, nil)
	require.NoError(t, err)
	for _, s := range statuses {
		require.Equal(t, "failure", s.Status)
		require.Equal(t, http.StatusServiceUnavailable, s.StatusCode)
	}
	require.Len(t, statuses, 1)
	d, _, err := c.Jobs().LatestDeployment("web", nil)
	require.NoError(t, err)
	require.Zero(t, d.TaskGroups["group"].HealthyAllocs)

	ready.Store(true)
	q := &api.QueryOptions{}
	for d.Status != "successful" {
		next, meta, err := c.Deployments().Info(d.ID, q)
		require.NoError(t, err)
		require.NotEqual(t, "failed", next.Status)
		d, q = next, &api.QueryOptions{WaitIndex: meta.LastIndex}
	}
	_, _, err = c.Jobs().Deregister("web", false, nil)
	require.NoError(t, err)
	services(t, c, 0)
}

// services waits until the service "web" is found at so many places.
func services(t *testing.T, c *api.Client, count int) []*api.ServiceRegistration {
	t.Helper()
	for q := (&api.QueryOptions{}); ; {
		found, meta, err := c.Services().Get("web", q)
		require.NoError(t, err)
		if len(found) == count {
			return found
		}
		q = &api.QueryOptions{WaitIndex: meta.LastIndex}
	}
}
