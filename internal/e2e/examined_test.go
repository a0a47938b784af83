package e2e

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/cli/clitest"
	"github.com/drover-project/drover/internal/e2e/program"
)

// command runs a command of the program against the agent, and returns its exit code and what it said.
func (a *agent) command(args ...string) (int, string) {
	c := exec.Command(program.Binary, args...)
	c.Env = append(os.Environ(), "DROVER_ADDR=http://"+a.addr)
	out, err := c.CombinedOutput()
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		return ended.ExitCode(), string(out)
	}
	require.NoError(a.t, err, string(out))
	return 0, string(out)
}

// TestAClusterIsExamined: the doctor finds nothing wrong with three servers, and says what is when one is down; an archive is
// collected from those that answer.
func TestAClusterIsExamined(t *testing.T) {
	t.Parallel()
	r := startServers(t, 3, "enable_debug = true\nserver {\n  join_token = \"a-secret-of-theirs\"\n}\n")
	leads := r.agreed(3, r.list...)
	follower, down := r.list[(leads+1)%3], r.list[(leads+2)%3]
	eventually(t, "a cluster that is well", func() (bool, string) {
		code, out := follower.command("doctor", "-cluster")
		require.NotEqual(t, 2, code, out)
		return code == 0 && strings.Contains(out, "3 of 3 voters answer: 1 can fail."), out // the disk may be slow for a while
	})
	nomadsMetrics(t, r)
	down.PullThePlug()
	code, out := follower.command("doctor", "-cluster")
	require.Equal(t, 1, code, out)
	require.Contains(t, out, "2 of 3 voters answer: one more failure stops the cluster")
	require.Contains(t, out, "it does not answer")
	archive := filepath.Join(t.TempDir(), "debug.tar.gz")
	code, out = follower.command("operator", "debug", "-duration", "1s", "-interval", "1s", "-output", archive)
	require.Equal(t, 0, code, out)
	files := clitest.Archived(t, archive)
	whole := ""
	for name, text := range files {
		_, name, _ = strings.Cut(name, "/")
		whole += name + "\n" + text + "\n"
	}
	for i, a := range r.list {
		of := "server/s" + string(rune('0'+i)) + ".global/"
		for _, name := range []string{"self.json", "checkup.json", "goroutine.txt", "heap.prof", "profile.prof", "metrics-0000.json"} {
			require.Equal(t, a != down, strings.Contains(whole, of+name+"\n"), "%s%s", of, name)
		}
	}
	require.Contains(t, whole, "nomad.raft.boltdb.storeLogs")
	require.Contains(t, whole, `"Path": "server/`, "what is missing is said")
	require.NotContains(t, whole, "a-secret-of-theirs")
}

// What several servers measure has Nomad's names, so that its dashboards show it. What is of the whole cluster the leader alone tells: sums
// over all servers are right.
var (
	metricsOfEach = []string{
		"nomad_raft_appliedIndex", "nomad_raft_lastIndex", "nomad_raft_boltdb_storeLogs", "nomad_memberlist_gossip", "nomad_serf_queue_Event",
	}
	metricsOfLeader = []string{
		"nomad_nomad_broker_total_ready", "nomad_nomad_broker_total_unacked", "nomad_nomad_blocked_evals_total_blocked",
		"nomad_nomad_plan_queue_depth", "nomad_nomad_plan_evaluate", "nomad_nomad_plan_apply", "nomad_nomad_plan_submit",
		"nomad_nomad_worker_dequeue_eval", "nomad_nomad_worker_submit_plan", "nomad_nomad_heartbeat_active", "nomad_nomad_leader_reconcile",
		"nomad_raft_commitTime", "nomad_raft_leader_lastContact", "nomad_raft_replication_heartbeat",
		"nomad_nomad_autopilot_healthy", "nomad_nomad_autopilot_failure_tolerance",
		"nomad_nomad_job_status_running", "nomad_nomad_job_summary_queued",
	}
	metricsOfLeaderAlone = []string{
		"nomad_nomad_broker_total_ready", "nomad_nomad_plan_queue_depth", "nomad_nomad_heartbeat_active", "nomad_nomad_autopilot_healthy",
		"nomad_nomad_job_status_running", "nomad_nomad_job_summary_queued",
	}
)

// nomadsMetrics looks for them at the leader, where a job is registered for that, and at a server that follows.
func nomadsMetrics(t *testing.T, r *region) {
	t.Helper()
	_, _, err := r.list[0].nomad().Jobs().Register(serversJob("measured"), nil)
	require.NoError(t, err)
	eventually(t, "metrics under Nomad's names", func() (bool, string) {
		leads := r.agreed(3, r.list...) // another may lead by now
		leader, follower := exportedMetrics(t, r.list[leads].addr), exportedMetrics(t, r.list[(leads+1)%3].addr)
		lacks := func(exported map[string]bool, want ...string) []string {
			return slices.DeleteFunc(want, func(name string) bool { return exported[name] })
		}
		missing := append(lacks(leader, slices.Concat(metricsOfEach, metricsOfLeader)...),
			lacks(follower, append(metricsOfEach[:len(metricsOfEach):len(metricsOfEach)], "nomad_raft_rpc_appendEntries")...)...)
		for _, name := range metricsOfLeaderAlone {
			if follower[name] {
				missing = append(missing, name+" is also at a server that follows")
			}
		}
		return len(missing) == 0, strings.Join(missing, ", ")
	})
}
