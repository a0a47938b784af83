package e2e

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/e2e/program"
)

// region is servers that find each other on loopback.
type region struct {
	t     *testing.T
	dir   string
	ports []string // of gossip, by server
	rpc   []string // ports where nodes dial, by server; any if there are none
	list  []*agent
	more  string             // of the configuration
	each  func(i int) string // more of that of the server with the number; nil is nothing
	with  string             // the program that servers are started with; "" = today's
	nodes bool               // each server is a node, too
}

// startServers starts n servers that begin a cluster together.
func startServers(t *testing.T, n int, more string) *region {
	t.Helper()
	return startServersWith(t, "", n, more)
}

// startServersWith is startServers with another program than today's.
func startServersWith(t *testing.T, with string, n int, more string) *region {
	t.Helper()
	r := &region{t: t, dir: t.TempDir(), more: more, with: with}
	r.begin(n)
	return r
}

func (r *region) begin(n int) {
	r.t.Helper()
	for range n {
		r.ports = append(r.ports, freePort(r.t))
	}
	for i := range n {
		r.list = append(r.list, r.start(i, n))
	}
}

// start starts the server with the number i, which joins the first.
func (r *region) start(i, expect int) *agent {
	r.t.Helper()
	args := []string{
		"-server", "-bootstrap-expect", fmt.Sprint(expect), "-node", fmt.Sprint("s", i), "-serf-port", r.ports[i], "-retry-interval", "1s",
	}
	if r.nodes {
		args = append(args, "-client")
	}
	for _, port := range r.ports {
		if port != r.ports[i] {
			args = append(args, "-retry-join", "127.0.0.1:"+port)
		}
	}
	if r.rpc != nil {
		args = append(args, "-rpc-port", r.rpc[i])
	}
	more := r.more
	if r.each != nil {
		more += r.each(i)
	}
	args = append(args, config(r.t, filepath.Join(r.dir, fmt.Sprint("s", i)), more)...)
	if r.with == "" {
		return start(r.t, args...)
	}
	a := program.LaunchOf(r.t, r.with, args...)
	require.NotEmpty(r.t, a.Addr, "the agent did not start:\n%s", a.Output())
	return &agent{Agent: a, t: r.t, addr: a.Addr}
}

// agreed waits until all the servers name the same leader and so many voters, and returns the leader's number.
func (r *region) agreed(voters int, of ...*agent) int {
	r.t.Helper()
	leads := -1
	eventually(r.t, "servers that agree", func() (bool, string) {
		first, seen := "", ""
		for i, a := range of {
			c, err := a.nomad().Operator().RaftGetConfiguration(&api.QueryOptions{AllowStale: true})
			if err != nil {
				return false, err.Error()
			}
			n, leader := 0, ""
			for _, s := range c.Servers {
				if s.Voter {
					n++
				}
				if s.Leader {
					leader = s.Node
				}
			}
			if i == 0 {
				first = leader
			}
			seen += fmt.Sprintf(" %s of %d", leader, n)
			if leader == "" || leader != first || n != voters {
				return false, seen
			}
		}
		_, err := fmt.Sscanf(first, "s%d.", &leads)
		return err == nil, seen
	})
	return leads
}

func serversJob(id string) *api.Job {
	job := api.NewBatchJob(id, id, "global", 50)
	task := api.NewTask("t", "raw_exec")
	task.SetConfig("command", "/bin/true")
	job.AddTaskGroup(api.NewTaskGroup("g", 1).AddTask(task))
	return job
}

// TestALeaderIsKilled: three servers are a cluster, any of them takes a job, and when the leader dies others go on with all
// that was acknowledged.
func TestALeaderIsKilled(t *testing.T) {
	t.Parallel()
	r := startServers(t, 3, "")
	leads := r.agreed(3, r.list...)
	for i, a := range r.list {
		_, _, err := a.nomad().Jobs().Register(serversJob(fmt.Sprint("before", i)), nil)
		require.NoError(t, err)
	}
	r.list[leads].PullThePlug()
	died := time.Now()
	var left []*agent
	for i, a := range r.list {
		if i != leads {
			left = append(left, a)
		}
	}
	eventually(t, "a write", func() (bool, string) {
		_, _, err := left[0].nomad().Jobs().Register(serversJob("after"), nil)
		return err == nil, fmt.Sprint(err)
	})
	t.Logf("first acknowledged write %v after the leader's death", time.Since(died).Round(time.Millisecond))
	for _, a := range left {
		for _, id := range []string{"before0", "before1", "before2", "after"} {
			eventually(t, id, func() (bool, string) {
				_, _, err := a.nomad().Jobs().Info(id, &api.QueryOptions{AllowStale: true})
				return err == nil, fmt.Sprint(err)
			})
		}
	}
	r.list[leads] = r.start(leads, 3) // with what it has on its disk
	r.agreed(3, r.list...)
	_, _, err := r.list[leads].nomad().Jobs().Register(serversJob("again"), nil)
	require.NoError(t, err)
}

// TestALoneServerGetsOthers: what a server wrote that was alone becomes a cluster's, and its servers are members on all.
func TestALoneServerGetsOthers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	lone := start(t, append([]string{"-server", "-node", "s0"}, config(t, filepath.Join(dir, "s0"), "")...)...)
	_, _, err := lone.nomad().Jobs().Register(serversJob("alone"), nil)
	require.NoError(t, err)
	lone.PullThePlug()

	r := &region{t: t, dir: dir, ports: []string{freePort(t), freePort(t), freePort(t)}}
	for i := range 3 {
		r.list = append(r.list, r.start(i, 3))
	}
	require.Equal(t, 0, r.agreed(3, r.list...), "the one with the data begins")
	for _, a := range r.list {
		eventually(t, "the job", func() (bool, string) {
			_, _, err := a.nomad().Jobs().Info("alone", &api.QueryOptions{AllowStale: true})
			return err == nil, fmt.Sprint(err)
		})
		members, err := a.nomad().Agent().Members()
		require.NoError(t, err)
		require.Len(t, members.Members, 3)
	}
}

// TestALeaderLeaves: a leader that is told to leave hands leadership over, and the others go on without it; it comes back as a
// new server would.
func TestALeaderLeaves(t *testing.T) {
	t.Parallel()
	r := startServers(t, 3, "leave_on_terminate = true\nserver {\n  encrypt = \"MDEyMzQ1Njc4OWFiY2RlZg==\"\n  rejoin_after_leave = true\n}\n"+
		"autopilot {\n  server_stabilization_time = \"1s\"\n}\n")
	leads := r.agreed(3, r.list...)
	r.list[leads].Stop()
	var left []*agent
	for i, a := range r.list {
		if i != leads {
			left = append(left, a)
		}
	}
	r.agreed(2, left...)
	members, err := left[0].nomad().Agent().Members()
	require.NoError(t, err)
	statuses := map[string]int{}
	for _, m := range members.Members {
		statuses[m.Status]++
	}
	require.Equal(t, map[string]int{"alive": 2, "left": 1}, statuses)
	_, _, err = left[0].nomad().Jobs().Register(serversJob("without"), nil)
	require.NoError(t, err)
	r.list[leads] = r.start(leads, 3)
	r.agreed(3, r.list...)
}

// TestJoining: a server that waits to be joined is joined by its API, and one that failed is taken out by it.
func TestJoining(t *testing.T) {
	t.Parallel()
	one, two, port := filepath.Join(t.TempDir(), "d"), filepath.Join(t.TempDir(), "d"), freePort(t)
	first := start(t, append([]string{"-server", "-node", "s0", "-serf-port", freePort(t)}, config(t, one, "")...)...)
	second := start(t, append([]string{"-server", "-bootstrap-expect", "0", "-node", "s1", "-serf-port", port}, config(t, two, "")...)...)
	n, err := first.nomad().Agent().Join("nope.invalid")
	require.Error(t, err)
	require.Zero(t, n)
	n, err = first.nomad().Agent().Join("127.0.0.1:" + port)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	eventually(t, "a leader", func() (bool, string) {
		leader, err := second.nomad().Status().Leader()
		return err == nil && leader != "", fmt.Sprint(err)
	})
	second.PullThePlug()
	statusOf := func(want int) (bool, string) {
		m, err := first.nomad().Agent().Members()
		require.NoError(t, err)
		for _, one := range m.Members {
			if one.Name == "s1.global" && one.Status == "failed" {
				return true, ""
			}
		}
		return len(m.Members) == want, fmt.Sprint(len(m.Members))
	}
	eventually(t, "a failed server", func() (bool, string) { return statusOf(1) })
	require.NoError(t, first.nomad().Agent().ForceLeaveWithOptions("s1.global", api.ForceLeaveOpts{Prune: true}))
	eventually(t, "one member", func() (bool, string) {
		m, err := first.nomad().Agent().Members()
		require.NoError(t, err)
		return len(m.Members) == 1, fmt.Sprint(len(m.Members))
	})
}

// TestServersOverTLS: servers with certificates of a server's name need no key, and nodes come in on the same port.
func TestServersOverTLS(t *testing.T) {
	t.Parallel()
	ca, cert, key := certificate(t)
	block := fmt.Sprintf("tls {\n  rpc = true\n  ca_file = %q\n  cert_file = %q\n  key_file = %q\n}\n", ca, cert, key)
	r := startServers(t, 3, block)
	leader := r.list[r.agreed(3, r.list...)]
	_, _, err := r.list[0].nomad().Jobs().Register(rawJob("hello", "batch", "/bin/true"), nil)
	require.NoError(t, err)
	m := rpcOn.FindStringSubmatch(leader.Output())
	require.NotNil(t, m, leader.Output())
	node := clientBlock("servers = [\"" + m[1] + "\"]")
	n := start(t, append([]string{"-client"}, config(t, filepath.Join(t.TempDir(), "node"), block+node)...)...)
	allocation(t, leader.nomad(), "hello", "complete")
	_, _, err = n.nomad().Jobs().Info("hello", nil)
	require.NoError(t, err, "the node asks over TLS, too")
}
