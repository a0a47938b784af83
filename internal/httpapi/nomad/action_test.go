package nomad_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/httpapi/nomad"
)

// withActions gives the job of the world's allocation two actions.
func withActions(w *world) {
	w.put(func(t *store.Txn) {
		a := *t.Allocation(allocID)
		a.Job = webJob("web")
		a.Job.TaskGroups[0].Tasks[0].Actions = []*drover.Action{
			{Name: "greet", Command: "echo", Args: []string{"a", "b"}}, {Name: "lost", Command: "missing"},
		}
		t.PutAllocation(&a)
	})
}

// Nomad's client runs the command that the job names, and none that it brings.
func TestActionRunsTheJobsCommand(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	withActions(w)
	run := func(job, group, task, name, alloc string) (int, string, error) {
		var out bytes.Buffer
		a := &api.Allocation{ID: alloc, NodeID: nodeID, TaskGroup: group}
		code, err := w.client.Jobs().ActionExec(t.Context(), a, job, task, false, []string{"cat", "/etc/shadow"}, name,
			strings.NewReader(""), &out, io.Discard, nil, nil)
		return code, out.String(), err
	}
	code, out, err := run("web", "g", "t", "greet", allocID)
	require.NoError(t, err)
	require.Equal(t, 3, code)
	require.Equal(t, "a b\n", out)
	require.Equal(t, []string{"echo", "a", "b"}, (<-w.node.sessions).spec.Argv)

	for want, c := range map[string][5]string{
		"failed to start the command: no such file":                                      {"web", "g", "t", "lost", allocID},
		`action "none" not found in task "t" of the allocation's version of the job`:     {"web", "g", "t", "none", allocID},
		`task "u" not found in allocation`:                                               {"web", "g", "u", "greet", allocID},
		`group is "h": the allocation is of group "g"`:                                   {"web", "h", "t", "greet", allocID},
		`allocation "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee" not found in job "other/one"`: {"other/one", "g", "t", "greet", allocID},
		`Unknown allocation "nope"`:                                                      {"web", "g", "t", "greet", "nope"},
	} {
		_, _, err := run(c[0], c[1], c[2], c[3], c[4])
		require.EqualError(t, err, want)
	}

	off := newWorld(t, func(c *nomad.Config) { c.DisableExec = true })
	w.client = off.client
	_, _, err = run("web", "g", "t", "greet", allocID)
	require.EqualError(t, err, "exec is disabled on this agent")
}

// An action needs what exec in the same task needs; its name in the query is no way around.
func TestActionNeedsTheRightToExecute(t *testing.T) {
	t.Parallel()
	w, h := tenants(t)
	withActions(w)
	h.give(t, "exec", `namespace "default" { capabilities = ["alloc-exec"] }`)
	h.give(t, "more", `namespace "default" { capabilities = ["alloc-exec", "alloc-node-exec"] }`)
	for token, want := range map[string]string{
		"none": "1008 (policy violation): Permission denied", "exec": "1008 (policy violation): Permission denied",
		"gone": "1008 (policy violation): ACL token not found", "more": "1000",
	} {
		url := "ws" + strings.TrimPrefix(w.url, "http") + "/v1/job/web/action?task=t&action=greet&allocID=" + allocID
		conn, resp, err := websocket.DefaultDialer.Dial(url, http.Header{"X-Nomad-Token": {token}})
		require.NoError(t, err)
		_ = resp.Body.Close()
		for err == nil {
			_, _, err = conn.ReadMessage()
		}
		require.ErrorContains(t, err, want, token)
		_ = conn.Close()
	}
}
