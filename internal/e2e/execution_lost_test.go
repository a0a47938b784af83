package e2e

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/e2e/program"
)

// A machine is lost in mid-execution: its agent, its supervisors and all they ran are gone at once, and it says nothing
// any more. Who waits hears why, and never of a success; the pool is at its size again on another node. When the
// machine is back, what is left there is removed.
func TestANodeIsLostDuringExecutions(t *testing.T) {
	t.Parallel()
	s := start(t, append([]string{"-server"}, config(t, filepath.Join(t.TempDir(), "server"),
		"server {\n  heartbeat_grace = \"3s\"\n  min_heartbeat_ttl = \"1s\"\n}")...)...)
	m := rpcOn.FindStringSubmatch(s.Output())
	require.NotNil(t, m, s.Output())
	servers := "servers = [\"" + m[1] + "\"]"
	parent := program.GroupParent() + "-lost"
	t.Cleanup(func() {
		if t.Failed() { // it would outlive this
			killGroup(t, parent)
			_ = removeGroup(parent)
		}
	})
	doomedArgs := append([]string{"-client"}, config(t, filepath.Join(t.TempDir(), "doomed"),
		fmt.Sprintf("client {\n  cgroup_parent = %q\n  %s\n}\n", parent, servers))...)
	doomed := start(t, doomedArgs...)
	s.putEnvironment("26", 2)
	runner := s.claim(26)
	was, err := s.native().Runner(t.Context(), runner)
	require.NoError(t, err)
	polled, err := s.native().StartExecution(t.Context(), runner,
		execution.Request{Spec: execution.Spec{Argv: []string{"/bin/sleep", "1000"}, Detach: -1}})
	require.NoError(t, err)
	ws := s.connect(runner, map[string]any{"command": "echo here; sleep 1000"})
	var first struct{ Type, Data string }
	for first.Type != "stdout" {
		require.NoError(t, ws.ReadJSON(&first))
	}
	other := start(t, append([]string{"-client"}, config(t, filepath.Join(t.TempDir(), "other"), clientBlock(servers))...)...)
	eventually(t, "two nodes", func() (bool, string) {
		nodes, _, err := s.nomad().Nodes().List(nil)
		require.NoError(t, err)
		return len(nodes) == 2 && nodes[0].Status == "ready" && nodes[1].Status == "ready", fmt.Sprint(len(nodes))
	})

	doomed.PullThePlug()
	killGroup(t, parent)
	types, _, code := drain(t, ws)
	require.Equal(t, websocket.CloseNormalClosure, code)
	require.NotContains(t, types, "exit")
	require.Equal(t, "error", types[len(types)-1], types)
	ended, err := s.native().WaitExecution(t.Context(), polled.ID)
	require.NoError(t, err)
	require.Equal(t, execution.CauseRunnerGone, ended.Receipt.Cause)
	require.NotZero(t, ended.Receipt.ExitCode)
	require.Contains(t, ended.Receipt.Error, "lost")

	eventually(t, "the pool at its size, elsewhere", func() (bool, string) {
		list, _, err := s.nomad().Allocations().List(nil)
		require.NoError(t, err)
		warm := 0
		for _, x := range list {
			if x.ClientStatus == "running" && x.NodeID != was.NodeID {
				warm++
			}
		}
		p := s.pool("26")
		return p.IdleRunners == 2 && p.UsedRunners == 0 && warm == 2, fmt.Sprint(p, warm)
	})
	status, _ := s.ask("GET", "/runners/"+runner+"/files", nil)
	require.Equal(t, 410, status)
	require.Equal(t, "usable\r\n", s.execute(s.claim(26), map[string]any{"command": "echo usable"}, "").stdout)

	status, _ = s.ask("DELETE", "/execution-environments/26", nil)
	require.Equal(t, 204, status)
	back := start(t, doomedArgs...)
	eventually(t, "empty nodes", func() (bool, string) { return emptyNodes(t, s) })
	other.Stop()
	back.Stop()
	require.Empty(t, removeGroup(parent), "control groups left")
}
