package e2e

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The servers of the test have requests wait this long for a leader; the machine may be busy beside.
const (
	holdTime = 2 * time.Second
	busy     = 15 * time.Second
)

// TestAMinorityAnswersWithinTheHoldTime: of three servers two are stopped, so that one is left which led, or which did not. It answers
// what wants a leader with Nomad's words, within the hold time and some patience with a busy machine. It goes on answering what wants
// none. It is a part of the cluster again as soon as one of the others goes on. Nobody restarts anything.
func TestAMinorityAnswersWithinTheHoldTime(t *testing.T) {
	t.Parallel()
	r := startServers(t, 3, fmt.Sprintf("server {\n  rpc_hold_timeout = %q\n}\n", holdTime))
	for _, name := range []string{"a follower", "the leader"} {
		leads := r.agreed(3, r.list...)
		_, _, err := r.list[leads].nomad().Jobs().Register(serversJob("before"), nil)
		require.NoError(t, err)
		left := leads
		if name == "a follower" {
			left = (leads + 1) % 3
		}
		a := r.list[left]
		eventually(t, "the job at each server", func() (bool, string) {
			_, text := a.request("GET", "/v1/jobs?stale", "")
			return strings.Contains(text, `"before"`), text
		})
		for _, other := range r.but(left) {
			require.NoError(t, syscall.Kill(other.PID(), syscall.SIGSTOP))
			t.Cleanup(func() { _ = syscall.Kill(other.PID(), syscall.SIGCONT) }) // else a test that failed never ends it
		}
		began := time.Now()
		longest := time.Duration(0)
		ask := func(method, path, body string) (int, string) {
			from := time.Now()
			status, text := a.request(method, path, body)
			longest = max(longest, time.Since(from))
			return status, text
		}
		eventually(t, "an answer of the minority", func() (bool, string) { // who led may answer until its lease has ended
			status, text := ask("GET", "/v1/jobs", "")
			return status == 500 && text == "No cluster leader", fmt.Sprint(status, " ", text)
		})
		first := time.Since(began)
		for path, method := range map[string]string{
			"/v1/jobs?consistent": "GET", "/v1/nodes": "GET", "/v1/job/before": "DELETE", "/v1/allocations": "GET",
		} {
			status, text := ask(method, path, "")
			require.Contains(t, text, "No cluster leader", "%s %s of %s: %d", method, path, name, status)
			require.GreaterOrEqual(t, status, 500)
		}
		require.Less(t, longest, holdTime+busy, "of the answers of %s", name)
		require.Greater(t, longest, holdTime/2, "they wait for a leader")
		from := time.Now()
		status, text := a.request("GET", "/v1/jobs?stale", "")
		require.Equal(t, 200, status, text)
		require.Contains(t, text, `"before"`)
		require.Less(t, time.Since(from), busy, "stale reads wait for nobody")

		from = time.Now()
		for _, other := range r.but(left) {
			require.NoError(t, syscall.Kill(other.PID(), syscall.SIGCONT))
		}
		eventually(t, "a cluster", func() (bool, string) {
			status, text := a.request("GET", "/v1/jobs?consistent", "")
			return status == 200 && strings.Contains(text, `"before"`), text
		})
		t.Logf("%s was left: first answer %.1f s after the others stood still, the longest took %.1f s, whole again after %.1f s", name,
			first.Seconds(), longest.Seconds(), time.Since(from).Seconds())
	}
	leads := r.agreed(3, r.list...)
	_, _, err := r.list[leads].nomad().Jobs().Register(serversJob("after"), nil)
	require.NoError(t, err)
}
