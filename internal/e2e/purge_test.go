package e2e

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestADeadNodeIsPurged: what a dead node had goes to others long before it is missed, by a drain or by forgetting it; and a forgotten
// node that lives registers again.
func TestADeadNodeIsPurged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := start(t, append([]string{"-server"}, config(t, filepath.Join(dir, "s"), "server {\n  heartbeat_grace = \"1h\"\n}\n")...)...)
	m := rpcOn.FindStringSubmatch(s.Output())
	require.NotNil(t, m, s.Output())
	begin := func(name string) *agent {
		file := config(t, filepath.Join(dir, name), clientBlock("servers = [\""+m[1]+"\"]"))
		return start(t, append([]string{"-client", "-node", name}, file...)...)
	}
	nodes := map[string]*agent{"n0": begin("n0"), "n1": begin("n1")}
	both := func() {
		eventually(t, "two nodes", func() (bool, string) {
			list, _, err := s.nomad().Nodes().List(nil)
			require.NoError(t, err)
			return len(list) == 2 && list[0].Status == "ready" && list[1].Status == "ready", fmt.Sprint(len(list))
		})
	}
	runs := func(but string) (name string) {
		eventually(t, "the service", func() (bool, string) {
			list, _, err := s.nomad().Jobs().Allocations("svc", true, nil)
			require.NoError(t, err)
			for _, a := range list {
				if a.ClientStatus == "running" && a.DesiredStatus == "run" && a.NodeName != but {
					name = a.NodeName
					return true, ""
				}
			}
			return false, fmt.Sprint(len(list))
		})
		return name
	}
	both()
	_, _, err := s.nomad().Jobs().Register(rawJob("svc", "service", "/bin/sleep", "1000"), nil)
	require.NoError(t, err)
	for _, how := range []string{"drain", "purge"} {
		dead := runs("")
		nodes[dead].PullThePlug()
		began := time.Now()
		if how == "drain" {
			code, out := s.command("node", "drain", "-enable", "-force", "-detach", dead)
			require.Zero(t, code, out)
			require.NotEqual(t, dead, runs(dead))
		}
		code, out := s.command("node", "purge", dead)
		require.Zero(t, code, out)
		require.Contains(t, out, "is forgotten")
		require.NotEqual(t, dead, runs(dead))
		t.Logf("%s: the service runs elsewhere after %v", how, time.Since(began).Round(time.Millisecond))
		code, out = s.command("node", "status", dead)
		require.NotZero(t, code, out)
		nodes[dead] = begin(dead)
		both()
	}
	_, _, err = s.nomad().Jobs().Deregister("svc", true, nil)
	require.NoError(t, err)
	nothingRuns(t, s.nomad())
}
