package e2e

import (
	"bytes"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/execution"
)

var rpcOn = regexp.MustCompile(`rpc=(127\.0\.0\.1:\d+)`)

// An agent with only a control part and one with only a node part are joined over loopback. The node dials, with the
// token that the server of the same user has left for it.
func TestNodeAndControlApart(t *testing.T) {
	t.Parallel()
	s := start(t, append([]string{"-server"}, config(t, filepath.Join(t.TempDir(), "server"), "")...)...)
	m := rpcOn.FindStringSubmatch(s.Output())
	require.NotNil(t, m, s.Output())
	stranger := start(t, append([]string{"-client"}, config(t, filepath.Join(t.TempDir(), "stranger"),
		clientBlock("servers = [\""+m[1]+"\"]\n  join_token = \"wrong\""))...)...)
	n := start(t, append([]string{"-client"}, config(t, filepath.Join(t.TempDir(), "node"), clientBlock("servers = [\""+m[1]+"\"]"))...)...)
	c := s.nomad()
	eventually(t, "the node", func() (bool, string) {
		nodes, _, err := c.Nodes().List(nil)
		require.NoError(t, err)
		return len(nodes) == 1 && nodes[0].Status == "ready", ""
	})
	eventually(t, "the stranger's refusal", func() (bool, string) {
		return strings.Contains(stranger.Output(), "level=ERROR"),
			stranger.Output()
	})
	require.Contains(t, stranger.Output(), "wrong join token: give it the server's")
	require.Contains(t, s.Output(), "DROVER_JOIN_TOKEN=TOKEN ")
	require.Contains(t, s.Output(), `level=WARN msg="a node was not admitted"`)

	_, _, err := c.Jobs().Register(rawJob("svc", "service", "/bin/sh", "-c", "echo hello; sleep 1000"), nil)
	require.NoError(t, err)
	a := allocation(t, c, "svc", "running")
	full, _, err := c.Allocations().Info(a.ID, nil)
	require.NoError(t, err)
	eventually(t, "the log", func() (bool, string) { text := logs(t, c, a.ID, "stdout"); return text == "hello\n", text })
	var out bytes.Buffer
	code, err := c.Allocations().Exec(t.Context(), full, "main", false, []string{"/bin/cat"}, strings.NewReader("through the tunnel"), &out,
		&out, nil, nil)
	require.NoError(t, err)
	require.Equal(t, 0, code)
	require.Equal(t, "through the tunnel", out.String())

	s.putEnvironment("10", 2)
	runner := s.claim(10)
	require.Equal(t, "remote\r\n", s.execute(runner, map[string]any{"command": "echo remote"}, "").stdout)
	require.NoError(t, s.native().ChangeFiles(t.Context(), runner, execution.FileChange{Path: "x", Write: true, Data: []byte("y")}))

	_, _, err = c.Jobs().Deregister("svc", true, nil)
	require.NoError(t, err)
	status, text := s.ask("DELETE", "/execution-environments/10", nil)
	require.Equal(t, 204, status, text)
	nothingRuns(t, c)
	n.Stop()
}
