package e2e

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
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

// A script in the task decides a rollout: what it says and its exit code are told, and the rollout goes on when it is content.
func TestAScriptChecksAService(t *testing.T) {
	t.Parallel()
	c := dev(t).nomad()
	job := rawJob("web", "service", "/bin/sh", "-c",
		"until [ -e $NOMAD_ALLOC_DIR/go ]; do sleep 0.05; done; touch $NOMAD_TASK_DIR/ready; sleep 1000")
	group := job.TaskGroups[0]
	group.Update = &api.UpdateStrategy{MinHealthyTime: new(10 * time.Millisecond), HealthyDeadline: new(time.Minute)}
	group.Services = []*api.Service{{Name: "web", PortLabel: "80", Checks: []api.ServiceCheck{{
		Type: "script", TaskName: "main", Command: "/bin/sh", Interval: time.Second, Timeout: time.Second,
		Args: []string{"-c", "echo $NOMAD_TASK_NAME of ${NOMAD_JOB_NAME}; test -e ${NOMAD_TASK_DIR}/ready || exit 3"},
	}}}}
	reg, _, err := c.Jobs().Register(job, nil)
	require.NoError(t, err)
	require.Empty(t, reg.Warnings)
	found := services(t, c, 1)[0]
	status := func() (last api.AllocCheckStatus) {
		statuses, err := c.Allocations().Checks(found.AllocID, nil)
		require.NoError(t, err)
		require.LessOrEqual(t, len(statuses), 1)
		for _, s := range statuses {
			last = s
		}
		return last
	}
	require.Eventually(t, func() bool { return status().Status == "failure" }, time.Minute, 50*time.Millisecond)
	require.Equal(t, 3, status().StatusCode)
	require.Equal(t, "main of web\n", status().Output)

	alloc, _, err := c.Allocations().Info(found.AllocID, nil)
	require.NoError(t, err)
	code, err := c.Allocations().Exec(t.Context(), alloc, "main", false, []string{"/bin/sh", "-c", "touch $NOMAD_ALLOC_DIR/go"},
		strings.NewReader(""), io.Discard, io.Discard, nil, nil)
	require.NoError(t, err)
	require.Zero(t, code)
	d, _, err := c.Jobs().LatestDeployment("web", nil)
	require.NoError(t, err)
	for q := (&api.QueryOptions{}); d.Status != "successful"; {
		next, meta, err := c.Deployments().Info(d.ID, q)
		require.NoError(t, err)
		require.NotEqual(t, "failed", next.Status)
		d, q = next, &api.QueryOptions{WaitIndex: meta.LastIndex}
	}
	require.Equal(t, "success", status().Status)
}
