package e2e

import (
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/gorilla/websocket"
	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"
)

// shell is an exec session in an allocation, by exactly this server.
type shell struct {
	t  testing.TB
	ws *websocket.Conn
}

func (a *agent) shell(allocID, script string) shell {
	a.t.Helper()
	command, err := json.Marshal([]string{"/bin/sh", "-c", script})
	require.NoError(a.t, err)
	q := url.Values{"task": {"main"}, "tty": {"false"}, "command": {string(command)}}
	ws, _, err := websocket.DefaultDialer.DialContext(a.t.Context(), "ws://"+a.addr+"/v1/client/allocation/"+allocID+"/exec?"+q.Encode(), nil)
	require.NoError(a.t, err)
	return shell{a.t, ws}
}

// says sends a line, and returns what comes until the session's end.
func (s shell) says(line string) (out string) {
	s.t.Helper()
	type data struct {
		Data  []byte `json:"data,omitempty"`
		Close bool   `json:"close,omitempty"`
	}
	require.NoError(s.t, s.ws.WriteJSON(map[string]any{"stdin": data{Data: []byte(line + "\n")}}))
	for {
		var frame struct {
			Stdout *data `json:"stdout"`
			Exited bool  `json:"exited"`
			Result *struct {
				ExitCode int `json:"exit_code"`
			} `json:"result"`
		}
		require.NoError(s.t, s.ws.ReadJSON(&frame), "after %q", out)
		if frame.Stdout != nil {
			out += string(frame.Stdout.Data)
		}
		if frame.Exited {
			require.NotNil(s.t, frame.Result)
			require.Zero(s.t, frame.Result.ExitCode)
			require.NoError(s.t, s.ws.Close())
			return out
		}
	}
}

// nodesOf starts n nodes that are told of the first server only.
func (r *region) nodesOf(n int) {
	r.t.Helper()
	m := rpcOn.FindStringSubmatch(r.list[0].Output())
	require.NotNil(r.t, m, r.list[0].Output())
	for i := range n {
		name := fmt.Sprint("n", i)
		file := config(r.t, filepath.Join(r.dir, name), clientBlock("servers = [\""+m[1]+"\"]"))
		start(r.t, append([]string{"-client", "-node", name}, file...)...)
	}
	r.ready(n)
}

// ready waits until n nodes are.
func (r *region) ready(n int) {
	r.t.Helper()
	eventually(r.t, "the nodes", func() (bool, string) {
		nodes, _, err := r.list[0].nomad().Nodes().List(nil)
		if err != nil {
			return false, err.Error()
		}
		ready := 0
		for _, one := range nodes {
			if one.Status == "ready" {
				ready++
			}
		}
		return ready == n, fmt.Sprint(nodes)
	})
}

// running waits until so many allocations of the job run, and returns their ids.
func running(t *testing.T, c *api.Client, jobID string, n int) (ids []string) {
	t.Helper()
	eventually(t, jobID, func() (bool, string) {
		list, _, err := c.Jobs().Allocations(jobID, true, nil)
		if err != nil {
			return false, err.Error()
		}
		ids = nil
		for _, a := range list {
			if a.ClientStatus == "running" {
				ids = append(ids, a.ID)
			}
		}
		return len(ids) == n, fmt.Sprint(len(list), " ", ids)
	})
	return ids
}

// tunnels waits until so many nodes have a tunnel to this server.
func (a *agent) tunnels(n int) {
	a.t.Helper()
	eventually(a.t, "the nodes' tunnels", func() (bool, string) {
		var m struct {
			Gauges []struct {
				Name  string
				Value float64
			}
		}
		status, text := a.request("GET", "/v1/metrics", "")
		if status != 200 || json.Unmarshal([]byte(text), &m) != nil {
			return false, text
		}
		for _, g := range m.Gauges {
			if g.Name == "drover.nodes.tunnels" {
				return g.Value == float64(n), fmt.Sprint(g.Value)
			}
		}
		return false, text
	})
}

// reach looks at the allocations through each of the servers: they run as they did, and none was started again.
func reach(t *testing.T, job string, ids []string, through ...*agent) {
	t.Helper()
	for _, s := range through {
		require.ElementsMatch(t, ids, running(t, s.nomad(), job, len(ids)))
		for _, id := range ids {
			eventually(t, "the log", func() (bool, string) {
				status, text := s.request("GET", "/v1/client/fs/logs/"+id+"?task=main&type=stdout&plain=true", "")
				return status == 200 && text == "hello\n", text
			})
			require.Equal(t, "got x\n", s.shell(id, "read x; echo got $x").says("x"))
		}
	}
}

// TestNodesOutliveServers: whichever server dies, stands still or comes back, nothing that runs stops, each server reaches each
// node, and sessions through other servers go on.
func TestNodesOutliveServers(t *testing.T) {
	t.Parallel()
	r := startServers(t, 3, "")
	leads := r.agreed(3, r.list...)
	r.nodesOf(2)
	job := rawJob("svc", "service", "/bin/sh", "-c", "echo hello; sleep 1000")
	job.TaskGroups[0].Count = new(4)
	_, _, err := r.list[0].nomad().Jobs().Register(job, nil)
	require.NoError(t, err)
	ids := running(t, r.list[0].nomad(), "svc", 4)
	reach(t, "svc", ids, r.list...)

	left := []*agent{r.list[(leads+1)%3], r.list[(leads+2)%3]}
	left[0].tunnels(2) // else the session goes through the server that has one
	session := left[0].shell(ids[0], "read x; echo got $x")
	r.list[leads].PullThePlug()
	r.agreed(3, left...)
	require.Equal(t, "got it\n", session.says("it"), "the session does not go through the server that died")
	_, _, err = left[1].nomad().Jobs().Register(rawJob("second", "service", "/bin/sh", "-c", "echo hello; sleep 1000"), nil)
	require.NoError(t, err)
	second := running(t, left[0].nomad(), "second", 1)
	reach(t, "svc", ids, left...)
	reach(t, "second", second, left...)

	r.list[leads] = r.start(leads, 3) // at another port, of which the nodes learn
	stopped := r.agreed(3, r.list...)
	reach(t, "svc", ids, r.list...)
	require.NoError(t, syscall.Kill(r.list[stopped].PID(), syscall.SIGSTOP))
	left = []*agent{r.list[(stopped+1)%3], r.list[(stopped+2)%3]}
	eventually(t, "a third job", func() (bool, string) {
		status, text := left[0].request("GET", "/v1/status/leader", "")
		if status != 200 || strings.Trim(text, "\"\n") == "" {
			return false, text
		}
		_, _, err := left[0].nomad().Jobs().Register(rawJob("third", "service", "/bin/sh", "-c", "echo hello; sleep 1000"), nil)
		return err == nil, fmt.Sprint(err)
	})
	third := running(t, left[1].nomad(), "third", 1)
	reach(t, "svc", ids, left...)
	reach(t, "third", third, left...)
	require.NoError(t, syscall.Kill(r.list[stopped].PID(), syscall.SIGCONT))
	r.agreed(3, r.list...)
	reach(t, "svc", ids, r.list...)
	for _, id := range []string{"svc", "second", "third"} {
		_, _, err := r.list[0].nomad().Jobs().Deregister(id, true, nil)
		require.NoError(t, err)
	}
	nothingRuns(t, r.list[0].nomad())
}

// TestServersThatAreNodesToo: servers reach the nodes of each other's processes, and one that was killed and comes back with older
// state than others have stops nothing that runs on it.
func TestServersThatAreNodesToo(t *testing.T) {
	t.Parallel()
	r := &region{t: t, dir: t.TempDir(), nodes: true}
	r.begin(3)
	leads := r.agreed(3, r.list...)
	r.ready(3)
	job := rawJob("svc", "service", "/bin/sh", "-c", "echo hello; sleep 1000")
	job.TaskGroups[0].Count = new(3)
	job.Constrain(api.NewConstraint("", "distinct_hosts", "true"))
	_, _, err := r.list[0].nomad().Jobs().Register(job, nil)
	require.NoError(t, err)
	ids := running(t, r.list[0].nomad(), "svc", 3)
	reach(t, "svc", ids, r.list...)

	r.list[leads].PullThePlug()
	left := []*agent{r.list[(leads+1)%3], r.list[(leads+2)%3]}
	r.agreed(3, left...)
	_, _, err = left[0].nomad().Jobs().Register(serversJob("meanwhile"), nil)
	require.NoError(t, err)
	r.list[leads] = r.start(leads, 3)
	r.agreed(3, r.list...)
	r.ready(3)
	reach(t, "svc", ids, r.list...)
	for _, id := range []string{"svc", "meanwhile"} {
		_, _, err := r.list[0].nomad().Jobs().Deregister(id, true, nil)
		require.NoError(t, err)
	}
	nothingRuns(t, r.list[0].nomad())
}
