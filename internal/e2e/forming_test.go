package e2e

import (
	"fmt"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"
)

// TestManyServersBegin: five and seven servers begin together, bear as many deaths at once as they can, and take the dead out.
func TestManyServersBegin(t *testing.T) {
	t.Parallel()
	for _, n := range []int{5, 7} {
		r := startServers(t, n, "autopilot {\n  server_stabilization_time = \"1s\"\n}\n")
		leads := r.agreed(n, r.list...)
		gone := []int{}
		for i := range n / 2 {
			gone = append(gone, (leads+i)%n)
			r.list[(leads+i)%n].PullThePlug()
		}
		left := r.without(gone...)
		eventually(t, "a write", func() (bool, string) {
			_, _, err := left[0].nomad().Jobs().Register(serversJob("after"), nil)
			return err == nil, fmt.Sprint(err)
		})
		r.agreed(len(left), left...)
		eventually(t, "health", func() (bool, string) {
			status, text := left[0].request("GET", "/v1/operator/autopilot/health", "")
			return status == http.StatusOK, text
		})
		for _, a := range left {
			a.Stop()
		}
	}
}

// TestWaysToJoin: a server that leads alone is joined at start, by retrying, and by command; all get what it had, and it leads on.
func TestWaysToJoin(t *testing.T) {
	t.Parallel()
	dir, port := t.TempDir(), freePort(t)
	const pilot = "autopilot {\n  server_stabilization_time = \"1s\"\n}\n"
	r := &region{t: t}
	begin := func(i int, port, more string, args ...string) *agent {
		name := fmt.Sprint("s", i)
		args = append([]string{"-server", "-node", name, "-serf-port", port, "-retry-interval", "1s"}, args...)
		return start(t, append(args, config(t, filepath.Join(dir, name), pilot+more)...)...)
	}
	lone := begin(0, port, "")
	_, _, err := lone.nomad().Jobs().Register(serversJob("before"), nil)
	require.NoError(t, err)
	at := "127.0.0.1:" + port
	waits := begin(3, freePort(t), "", "-bootstrap-expect", "0")
	r.list = []*agent{
		lone,
		begin(1, freePort(t), "server {\n  bootstrap_expect = 0\n  start_join = [\""+at+"\"]\n}\n"),
		begin(2, freePort(t), "server {\n  bootstrap_expect = 0\n  server_join {\n    retry_join = [\""+at+"\"]\n  }\n}\n"),
		waits,
	}
	_, err = waits.nomad().Status().Leader()
	require.ErrorContains(t, err, "No cluster leader", "it waits to be joined")
	code, out := waits.command("server", "join", at)
	require.Zero(t, code, out)
	require.Zero(t, r.agreed(4, r.list...))
	for _, a := range r.list {
		eventually(t, "the job from before", func() (bool, string) {
			_, _, err := a.nomad().Jobs().Info("before", &api.QueryOptions{AllowStale: true})
			return err == nil, fmt.Sprint(err)
		})
	}
}

// TestServersAreMovedByHand: an operator hands leadership over, sees who is missing, and takes that one out.
func TestServersAreMovedByHand(t *testing.T) {
	t.Parallel()
	r := startServers(t, 3, "autopilot {\n  server_stabilization_time = \"1s\"\n  cleanup_dead_servers = false\n}\n")
	leads := r.agreed(3, r.list...)
	next, dead := (leads+1)%3, (leads+2)%3
	id := func(i int) string {
		c, err := r.list[leads].nomad().Operator().RaftGetConfiguration(nil)
		require.NoError(t, err)
		for _, s := range c.Servers {
			if s.Node == fmt.Sprintf("s%d.global", i) {
				return s.ID
			}
		}
		return ""
	}
	to, of := id(next), id(dead)
	code, out := r.list[dead].command("operator", "raft", "transfer-leadership", "-peer-id", to)
	require.Zero(t, code, out)
	eventually(t, "the chosen leader", func() (bool, string) { n := r.agreed(3, r.list...); return n == next, fmt.Sprint(n) })
	r.measured(next)
	r.list[dead].PullThePlug()
	eventually(t, "illness", func() (bool, string) {
		status, text := r.list[leads].request("GET", "/v1/operator/autopilot/health", "")
		return status == http.StatusTooManyRequests, text
	})
	r.status(r.list[leads], dead, "failed")
	code, out = r.list[leads].command("operator", "raft", "remove-peer", "-peer-id", of)
	require.Zero(t, code, out)
	r.agreed(2, r.without(dead)...)
	code, out = r.list[leads].command("server", "force-leave", "-prune", fmt.Sprintf("s%d.global", dead))
	require.Zero(t, code, out)
	eventually(t, "two members", func() (bool, string) {
		m, err := r.list[next].nomad().Agent().Members()
		require.NoError(t, err)
		return len(m.Members) == 2, fmt.Sprint(len(m.Members))
	})
}

// measured: who leads tells of jobs and of its own doings, the others do not.
func (r *region) measured(leads int) {
	t := r.t
	_, _, err := r.list[0].nomad().Jobs().Register(serversJob("measured"), nil)
	require.NoError(t, err)
	_, _, err = r.list[(leads+1)%3].nomad().Jobs().List(nil) // the leader answers it
	require.NoError(t, err)
	eventually(t, "the leader's metrics", func() (bool, string) {
		seen := exportedMetrics(t, r.list[leads].addr)
		for _, name := range []string{
			"nomad_nomad_leader_reconcile", "nomad_nomad_eval_ack", "nomad_nomad_rpc_request", "nomad_nomad_rpc_query",
			"nomad_nomad_rpc_raft_handoff", "nomad_nomad_rpc_accept_conn", "nomad_nomad_job_status_pending", "nomad_nomad_job_summary_queued",
		} {
			if !seen[name] {
				return false, "no " + name
			}
		}
		return true, ""
	})
	for i, a := range r.list {
		if i != leads {
			seen := exportedMetrics(t, a.addr)
			require.False(t, seen["nomad_nomad_job_status_pending"] || seen["nomad_nomad_job_summary_queued"], "s%d does not lead", i)
			require.True(t, seen["nomad_raft_appliedIndex"])
		}
	}
}
