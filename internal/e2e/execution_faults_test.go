package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/client"
	"github.com/drover-project/drover/execution"
)

// drain reads a websocket to its end: the types of its messages, its stdout, and the close code.
func drain(t *testing.T, ws *websocket.Conn) (types []string, stdout string, code int) {
	t.Helper()
	for {
		var m struct {
			Type string
			Data any
		}
		if err := ws.ReadJSON(&m); err != nil {
			if closed, ok := errors.AsType[*websocket.CloseError](err); ok {
				return types, stdout, closed.Code
			}
			return types, stdout, websocket.CloseAbnormalClosure
		}
		types = append(types, m.Type)
		if m.Type == "stdout" {
			stdout += m.Data.(string)
		}
	}
}

// The plug is pulled while a client of Poseidon's API has an execution running: it never hears of a success, and what
// was claimed is still there afterwards.
func TestKilledWhileCodeOceanListens(t *testing.T) {
	t.Parallel()
	args := append([]string{"-server", "-client"}, config(t, filepath.Join(t.TempDir(), "data"), "")...)
	a := start(t, args...)
	t.Cleanup(func() { cleanAfter(t, args) })
	a.putEnvironment("21", 2)
	runner := a.claim(21)
	ws := a.connect(runner, map[string]any{"command": "echo one; sleep 1000; echo two"})
	var first struct{ Type, Data string }
	require.NoError(t, ws.ReadJSON(&first))
	require.Equal(t, "start", first.Type)
	require.NoError(t, ws.ReadJSON(&first))
	require.Equal(t, "one\r\n", first.Data)

	a.PullThePlug()
	types, _, code := drain(t, ws)
	require.NotContains(t, types, "exit")
	require.Equal(t, websocket.CloseAbnormalClosure, code)

	b := start(t, args...)
	eventually(t, "the pool as before", func() (bool, string) {
		p := b.pool("21")
		return p.IdleRunners == 2 && p.UsedRunners == 1, fmt.Sprint(p)
	})
	require.Equal(t, "usable\r\n", b.execute(runner, map[string]any{"command": "echo usable"}, "").stdout)
}

// A node's agent is killed while an execution runs there. What comes back in time goes on where it was, byte for byte;
// what doesn't is an error.
func TestANodesAgentIsKilledDuringExecutions(t *testing.T) {
	t.Parallel()
	s := start(t, append([]string{"-server"}, config(t, filepath.Join(t.TempDir(), "server"), "")...)...)
	m := rpcOn.FindStringSubmatch(s.Output())
	require.NotNil(t, m, s.Output())
	args := append([]string{"-client"}, config(t, filepath.Join(t.TempDir(), "node"), clientBlock("servers = [\""+m[1]+"\"]"))...)
	n := start(t, args...)
	s.putEnvironment("22", 2)
	runner := s.claim(22)
	ws := s.connect(runner, map[string]any{"command": "for i in $(seq 40); do echo $i; sleep 0.1; done"})
	lost := s.connect(s.claim(22), map[string]any{"command": "echo here; sleep 1000"})
	var first struct{ Type, Data string }
	for _, c := range []*websocket.Conn{lost, ws} { // until both run
		require.NoError(t, c.ReadJSON(&first))
		require.NoError(t, c.ReadJSON(&first))
		require.Equal(t, "stdout", first.Type)
	}

	n.PullThePlug()
	n = start(t, args...)
	types, stdout, code := drain(t, ws)
	require.Equal(t, websocket.CloseNormalClosure, code)
	require.Equal(t, "exit", types[len(types)-1], types)
	var want strings.Builder
	for i := range 40 {
		fmt.Fprintf(&want, "%d\r\n", i+1)
	}
	require.Equal(t, want.String(), first.Data+stdout)

	status, _ := s.ask("DELETE", "/execution-environments/22", nil)
	require.Equal(t, 204, status)
	types, _, code = drain(t, lost)
	require.Equal(t, websocket.CloseNormalClosure, code)
	require.Equal(t, "error", types[len(types)-1], types)
	nothingRuns(t, s.nomad())
	n.Stop()
}

// 64 MiB come through byte for byte, and then the exit, at a reader that pauses.
func TestMuchOutputIsWhole(t *testing.T) {
	t.Parallel()
	a := dev(t)
	a.putEnvironment("23", 1)
	c := a.native()
	program := `import hashlib, os, sys
h = hashlib.sha256()
for i in range(64):
    b = os.urandom(1 << 20)
    h.update(b)
    sys.stdout.buffer.write(b)
sys.stdout.flush()
sys.stderr.write(h.hexdigest())
sys.exit(9)`
	session, err := c.Execute(t.Context(), a.claim(23), execution.Request{Spec: execution.Spec{Argv: []string{"python3", "-c", program}}})
	require.NoError(t, err)
	defer session.Close()
	got, size, told := sha256.New(), 0, ""
	for {
		f, err := session.Next(t.Context())
		require.NoError(t, err)
		if f.Receipt != nil {
			require.Equal(t, 9, f.Receipt.ExitCode)
			require.False(t, f.Receipt.Truncated)
			require.Equal(t, int64(64<<20), f.Receipt.StdoutBytes)
			break
		}
		if f.Stream == execution.Stderr {
			told += string(f.Data)
		} else if len(f.Data) > 0 {
			_, _ = got.Write(f.Data) // a hash takes everything
			size += len(f.Data)
		}
	}
	require.Equal(t, 64<<20, size)
	require.Equal(t, told, hex.EncodeToString(got.Sum(nil)))
	_, err = session.Next(t.Context())
	require.ErrorIs(t, err, io.EOF)
}

// What happens to environments, runners and executions is in the one event stream, with one order of indexes.
func TestEventsOfTheExecutionService(t *testing.T) {
	t.Parallel()
	a := dev(t)
	c := a.native()
	stream, err := c.Events(t.Context(), 0, "Environment", "Runner", "Execution")
	require.NoError(t, err)
	defer stream.Close()
	a.putEnvironment("24", 1)
	runner := a.claim(24)
	_, err = c.StartExecution(t.Context(), runner, execution.Request{Command: "exit 3"})
	require.NoError(t, err)
	seen, last := map[string]string{}, uint64(0)
	for seen["ExecutionEnded"] == "" {
		events, err := stream.Next()
		require.NoError(t, err)
		require.Greater(t, events.Index, last)
		last = events.Index
		for _, e := range events.Events {
			require.Equal(t, events.Index, e.Index)
			if e.Key == "24" || strings.HasPrefix(e.Key, "24-") || e.FilterKeys[0] == runner {
				seen[e.Type] = e.Key
			}
		}
	}
	require.Equal(t, "24", seen["EnvironmentUpdated"])
	require.Equal(t, runner, seen["RunnerClaimed"])
	require.Equal(t, seen["ExecutionStarted"], seen["ExecutionEnded"])
	ended, err := c.Events(t.Context(), last, "Execution:"+runner)
	require.NoError(t, err)
	defer ended.Close()
	again, err := ended.Next()
	require.NoError(t, err)
	require.Equal(t, last, again.Index, "who asks for an index again gets it again")
}

// A receipt, and a webhook that could not be told, outlive a kill of the server.
func TestReceiptsOutliveAKill(t *testing.T) {
	t.Parallel()
	args := append([]string{"-server", "-client"}, config(t, filepath.Join(t.TempDir(), "data"), "")...)
	a := start(t, args...)
	t.Cleanup(func() { cleanAfter(t, args) })
	a.putEnvironment("25", 1)
	runner := a.claim(25)
	key := client.WithIdempotencyKey(t.Context(), "key")
	claimed, err := a.native().Claim(key, execution.ClaimRequest{Environment: "25", Wait: time.Minute})
	require.NoError(t, err)
	other := client.WithIdempotencyKey(t.Context(), "other")
	x, err := a.native().StartExecution(other, runner, execution.Request{Command: "exit 7"})
	require.NoError(t, err)
	_, err = a.native().WaitExecution(t.Context(), x.ID)
	require.NoError(t, err)
	a.PullThePlug()
	b := start(t, args...)
	var kept execution.Execution
	eventually(t, "the receipt", func() (bool, string) {
		kept, err = b.native().Execution(t.Context(), x.ID)
		return err == nil, fmt.Sprint(err)
	})
	require.False(t, kept.Running)
	require.Equal(t, 7, kept.Receipt.ExitCode)
	again, err := b.native().StartExecution(other, runner, execution.Request{Command: "exit 7"})
	require.NoError(t, err)
	require.Equal(t, x.ID, again.ID, "the key names it over a restart")
	same, err := b.native().Claim(key, execution.ClaimRequest{Environment: "25", Wait: time.Minute})
	require.NoError(t, err)
	require.Equal(t, claimed.ID, same.ID)
}
