package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/fleet"
	"github.com/drover-project/drover/internal/httpapi/native"
	"github.com/drover-project/drover/internal/httpapi/nomad"
	"github.com/drover-project/drover/internal/httpapi/poseidon"
)

// TestAnyServerAnswersEverything asks a follower each route of all faces, beside the leader, and has it relay executions, logs,
// uploads and events.
func TestAnyServerAnswersEverything(t *testing.T) {
	t.Parallel()
	r := startServers(t, 3, "")
	leads := r.agreed(3, r.list...)
	leader, follower := r.list[leads], r.list[(leads+1)%3]
	m := rpcOn.FindStringSubmatch(leader.Output())
	require.NotNil(t, m, leader.Output())
	n := start(t, append([]string{"-client"}, config(t, filepath.Join(t.TempDir(), "node"), clientBlock("servers = [\""+m[1]+"\"]"))...)...)
	c := follower.nomad()
	eventually(t, "the node", func() (bool, string) {
		nodes, _, err := c.Nodes().List(nil)
		require.NoError(t, err)
		return len(nodes) == 1 && nodes[0].Status == "ready", ""
	})

	events, err := c.EventStream().Stream(t.Context(), map[api.Topic][]string{api.TopicJob: {"*"}}, 0, nil)
	require.NoError(t, err)
	_, _, err = c.Jobs().Register(rawJob("svc", "service", "/bin/sh", "-c", "echo hello; sleep 1000"), nil)
	require.NoError(t, err)
	for e := range events {
		require.NoError(t, e.Err)
		if len(e.Events) > 0 {
			require.Equal(t, "svc", e.Events[0].Key)
			break
		}
	}
	a := allocation(t, c, "svc", "running")
	eventually(t, "the log", func() (bool, string) { text := logs(t, c, a.ID, "stdout"); return text == "hello\n", text })
	full, _, err := c.Allocations().Info(a.ID, nil)
	require.NoError(t, err)
	var out bytes.Buffer
	in := strings.NewReader("relayed")
	code, err := c.Allocations().Exec(t.Context(), full, "main", false, []string{"/bin/cat"}, in, &out, &out, nil, nil)
	require.NoError(t, err)
	require.Zero(t, code)
	require.Equal(t, "relayed", out.String())

	follower.putEnvironment("10", 1)
	runner := follower.claim(10)
	require.Equal(t, "relayed\r\n", follower.execute(runner, map[string]any{"command": "echo relayed"}, "").stdout)
	big := bytes.Repeat([]byte("0123456789abcdef"), 1<<19)
	status, text := follower.request("PUT", "/v1/runner/"+runner+"/file?path=big", string(big))
	require.Less(t, status, 300, text)
	status, text = follower.request("GET", "/v1/runner/"+runner+"/file?path=big", "")
	require.Equal(t, 200, status)
	require.Equal(t, len(big), len(text))

	sameAnswers(leader, follower, full, runner, func(httpapi.Route) bool { return true })
	throughTheNode(n, leader, full)
	r.goesOn(follower, r.list[(leads+2)%3])
	_, _, err = c.Jobs().Deregister("svc", true, nil)
	require.NoError(t, err)
	status, text = follower.ask("DELETE", "/execution-environments/10", nil)
	require.Equal(t, 204, status, text)
	nothingRuns(t, leader.nomad())
	n.Stop()
	r.consistency(leader, follower)
}

// sameAnswers compares what both say to each route's request, with what is there in the place of its parameters.
func sameAnswers(leader, follower *agent, alloc *api.Allocation, runner string, asks func(httpapi.Route) bool) {
	t := leader.t
	names := strings.NewReplacer("{runner}", runner, "{environment}", "10", "{rest...}", "svc", "{name}", "default", "{id...}", "none")
	for _, route := range everyRoute() {
		methods, path, _ := strings.Cut(route.Pattern, " ")
		id := alloc.ID
		switch {
		case strings.Contains(path, "/node/"):
			id = alloc.NodeID
		case strings.Contains(path, "/evaluation/"):
			id = alloc.EvalID
		}
		path = strings.NewReplacer("{id}", id, "{action}", "allocations").Replace(names.Replace(path))
		if !asks(route) || route.Stream && !strings.Contains(path, "/fs/") || strings.Contains(path, "{") || !strings.HasPrefix(path, "/") {
			continue
		}
		if strings.Contains(path, "/fs/") {
			path += "?path=/&task=main&type=stdout&plain=true&offset=0&limit=1"
		}
		method := "GET"
		if methods != "" && !slices.Contains(strings.Split(methods, ","), "GET") {
			method = strings.Split(methods, ",")[0]
			path = strings.NewReplacer("svc", "no-such-job", alloc.ID, "no-such-thing", runner, "no-such-runner").Replace(path)
		}
		if method == "DELETE" || strings.Contains(path, "/gc") { // it would take away what others ask for
			continue
		}
		there, ofLeader := leader.request(method, path, "")
		here, ofFollower := follower.request(method, path, "")
		require.Equal(t, there, here, "%s %s: %s here, %s there", method, path, ofFollower, ofLeader)
		if there == http.StatusOK && json.Valid([]byte(ofLeader)) {
			require.Equal(t, fieldsOf(ofLeader), fieldsOf(ofFollower), "%s %s", method, path)
		}
	}
}

// throughTheNode asks an agent that is only a node: of what is not about itself it answers what a server does, with
// executions, uploads and events.
func throughTheNode(n, leader *agent, alloc *api.Allocation) {
	t := n.t
	c := n.nomad()
	events, err := c.EventStream().Stream(t.Context(), map[api.Topic][]string{api.TopicJob: {"*"}}, 0, nil)
	require.NoError(t, err)
	_, _, err = c.Jobs().Register(serversJob("through-the-node"), nil)
	require.NoError(t, err)
	for e := range events {
		require.NoError(t, e.Err)
		if len(e.Events) > 0 && e.Events[0].Key == "through-the-node" {
			break
		}
	}
	require.Contains(t, logs(t, c, alloc.ID, "stdout"), "hello")
	var out bytes.Buffer
	code, err := c.Allocations().Exec(t.Context(), alloc, "main", false, []string{"/bin/cat"}, strings.NewReader("in"), &out, &out, nil, nil)
	require.NoError(t, err)
	require.Zero(t, code)
	require.Equal(t, "in", out.String())
	runner := n.claim(10)
	require.Equal(t, "relayed\r\n", n.execute(runner, map[string]any{"command": "echo relayed"}, "").stdout)
	big := bytes.Repeat([]byte("0123456789abcdef"), 1<<19)
	status, text := n.request("PUT", "/v1/runner/"+runner+"/file?path=big", string(big))
	require.Less(t, status, 300, text)
	status, text = n.request("GET", "/v1/runner/"+runner+"/file?path=big", "")
	require.Equal(t, 200, status)
	require.Equal(t, len(big), len(text))

	sameAnswers(leader, n, alloc, runner, func(r httpapi.Route) bool {
		p := r.Where.Place
		return p != httpapi.AtHere && p != httpapi.AtMember && p != httpapi.AtNode && !strings.HasSuffix(r.Pattern, "/client/metadata")
	})
	_, meta, err := c.Jobs().List(&api.QueryOptions{AllowStale: true})
	require.NoError(t, err)
	require.True(t, meta.KnownLeader)
	self, err := c.Agent().Self()
	require.NoError(t, err)
	require.Equal(t, alloc.NodeID, self.Stats["client"]["node_id"], "it answers of itself")
	stats, err := c.Nodes().Stats("", nil)
	require.NoError(t, err)
	require.NotEmpty(t, stats.CPU)
	metadata, err := c.Nodes().Meta().Read("", nil)
	require.NoError(t, err)
	require.NotNil(t, metadata.Meta, "its node's, which servers have")
	for _, path := range []string{"self", "host"} {
		status, text = leader.request("GET", "/v1/agent/"+path+"?node_id="+alloc.NodeID, "")
		require.Equal(t, 200, status, text)
	}
	status, text = leader.request("GET", "/v1/metrics?node_id="+alloc.NodeID, "")
	require.Equal(t, 200, status, text)
	require.Contains(t, text, "nomad.client.allocated.cpu", "the node's own")
	status, text = leader.request("GET", "/v1/agent/host?node_id=nope", "")
	require.Equal(t, http.StatusServiceUnavailable, status, text)
	status, text = n.request("GET", "/v1/agent/host?node_id=nope", "")
	require.Equal(t, http.StatusServiceUnavailable, status, text)
	status, text = n.request("GET", "/v1/agent/checkup?server_id=leader", "")
	require.Equal(t, 200, status, text)
	status, text = n.request("GET", "/v1/agent/checkup", "")
	require.Equal(t, http.StatusNotImplemented, status, text)
}

// goesOn: who waits at one server for what comes after an index goes on at another with the same index.
func (r *region) goesOn(one, other *agent) {
	t := r.t
	_, meta, err := one.nomad().Jobs().List(nil)
	require.NoError(t, err)
	_, _, err = one.nomad().Jobs().Register(serversJob("goes-on"), nil)
	require.NoError(t, err)
	jobs, _, err := other.nomad().Jobs().List(&api.QueryOptions{WaitIndex: meta.LastIndex, WaitTime: time.Minute})
	require.NoError(t, err)
	require.True(t, slices.ContainsFunc(jobs, func(j *api.JobListStub) bool { return j.ID == "goes-on" }))
	events, err := other.nomad().EventStream().Stream(t.Context(), map[api.Topic][]string{api.TopicJob: {"*"}}, meta.LastIndex+1, nil)
	require.NoError(t, err)
	for e := range events {
		require.NoError(t, e.Err)
		if len(e.Events) > 0 && e.Events[0].Key == "goes-on" {
			return
		}
	}
}

// consistency asks with the three modes.
func (r *region) consistency(leader, follower *agent) {
	t := r.t
	c := follower.nomad()
	_, meta, err := c.Jobs().List(nil)
	require.NoError(t, err)
	require.True(t, meta.KnownLeader)
	require.Zero(t, meta.LastContact, "the leader answers")
	for i := range 20 {
		id := "consistent" + strconv.Itoa(i)
		_, _, err := leader.nomad().Jobs().Register(serversJob(id), nil)
		require.NoError(t, err)
		_, _, err = c.Jobs().Info(id, &api.QueryOptions{Params: map[string]string{"consistent": "true"}})
		require.NoError(t, err, "a consistent read at a follower sees what was acknowledged before")
	}
	_, meta, err = c.Jobs().List(&api.QueryOptions{AllowStale: true})
	require.NoError(t, err)
	require.True(t, meta.KnownLeader)
	gone := 0
	for i, other := range r.list {
		if other != follower {
			other.PullThePlug()
			gone = i
		}
	}
	res, err := http.Get("http://" + follower.addr + "/v1/jobs")
	require.NoError(t, err)
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, http.StatusInternalServerError, res.StatusCode)
	require.Equal(t, "No cluster leader", string(text))
	_, meta, err = c.Jobs().List(&api.QueryOptions{AllowStale: true})
	require.NoError(t, err, "a server alone still answers stale reads")
	require.False(t, meta.KnownLeader)
	require.NotZero(t, meta.LastContact)
	r.list[gone] = r.start(gone, 3)
	eventually(t, "a majority", func() (bool, string) {
		_, _, err := c.Jobs().List(nil)
		return err == nil, fmt.Sprint(err)
	})
}

func everyRoute() []httpapi.Route {
	return slices.Concat(
		nomad.New(nomad.Config{}).Routes(), poseidon.New(poseidon.Config{}, poseidon.Deps{}).Routes(),
		native.New(native.Config{}, native.Deps{}).Routes(), (&fleet.Face{}).Routes(),
	)
}

// fieldsOf is the names of an object's fields; of a list those of its first element.
func fieldsOf(text string) []string {
	var list []json.RawMessage
	if json.Unmarshal([]byte(text), &list) == nil {
		if len(list) == 0 {
			return nil
		}
		text = string(list[0])
	}
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &object) != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(object))
}

// TestALeaderIsStopped: requests that a stopped leader holds end, and others go to the next leader.
func TestALeaderIsStopped(t *testing.T) {
	t.Parallel()
	r := startServers(t, 3, "")
	leads := r.agreed(3, r.list...)
	follower := r.list[(leads+1)%3]
	status, text := follower.request("GET", "/v1/nodes", "") // over a connection that is kept
	require.Equal(t, 200, status, text)
	require.NoError(t, syscall.Kill(r.list[leads].PID(), syscall.SIGSTOP))
	defer func() { require.NoError(t, syscall.Kill(r.list[leads].PID(), syscall.SIGCONT)) }()
	stopped := time.Now()
	status, text = follower.request("GET", "/v1/nodes", "")
	t.Logf("the request that it held was answered after %v: %d %s", time.Since(stopped).Round(time.Millisecond), status, text)
	require.Less(t, time.Since(stopped), time.Minute, "it is held no longer than the stopped server is believed to lead")
	eventually(t, "another leader", func() (bool, string) {
		status, text = follower.request("GET", "/v1/nodes", "")
		return status == 200, text
	})
	t.Logf("and one was carried out after %v", time.Since(stopped).Round(time.Millisecond))
}
