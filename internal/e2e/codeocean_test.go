package e2e

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/client"
	"github.com/drover-project/drover/execution"
)

// TestCodeOceansSequence makes the calls that CodeOcean makes for one run, in its order, against a pool that keeps no
// runner warm.
func TestCodeOceansSequence(t *testing.T) {
	t.Parallel()
	a := dev(t)
	status, text := a.ask("GET", "/execution-environments", nil)
	require.Equal(t, 200, status)
	require.JSONEq(t, `{"executionEnvironments":null}`, text)
	status, text = a.ask("POST", "/runners", map[string]any{"executionEnvironmentId": 11, "inactivityTimeout": 180})
	require.Equal(t, 404, status)
	require.JSONEq(t, `{"message":"nomad wrapped: execution environment not found"}`, text)
	body := map[string]any{
		"id": 11, "image": "host", "prewarmingPoolSize": 0, "cpuLimit": 20, "memoryLimit": 100, "networkAccess": false,
		"exposedPorts": []int{},
	}
	status, text = a.ask("PUT", "/execution-environments/11", body)
	require.Equal(t, 201, status)
	require.Empty(t, text)
	status, _ = a.ask("PUT", "/execution-environments/11", body)
	require.Equal(t, 204, status)
	_, text = a.ask("GET", "/execution-environments/11", nil)
	require.Equal(t, `{"prewarmingPoolSize":0,"cpuLimit":20,"memoryLimit":100,"image":"host","networkAccess":false,"exposedPorts":[],"id":11}`,
		text)

	runner := a.claim(11) // started for this claim
	status, text = a.ask("PATCH", "/runners/"+runner+"/files", map[string]any{
		"copy": []map[string]any{{"path": "src/"}, {
			"path":    "src/main.py",
			"content": base64.StdEncoding.EncodeToString([]byte("print(input()[::-1])\n")),
		}},
		"delete": []string{"./*"},
	})
	require.Equal(t, 204, status, text)
	out := a.execute(runner, map[string]any{"command": "python3 src/main.py", "timeLimit": 10, "privilegedExecution": false}, "abc\n")
	require.Equal(t, "abc\r\ncba\r\n", out.stdout)
	require.Equal(t, []string{"start", "exit"}, []string{out.types[0], out.types[len(out.types)-1]})
	require.Equal(t, 0, out.exit)
	require.Equal(t, websocket.CloseNormalClosure, out.code)
	status, text = a.ask("GET", "/runners/"+runner+"/files?path=./&recursive=true&privilegedExecution=false", nil)
	require.Equal(t, 200, status)
	require.Contains(t, text, `"./src/main.py"`)
	out = a.execute(runner, map[string]any{"command": "env | grep -c NOMAD_; echo $CODEOCEAN $TERM"}, "")
	require.Equal(t, "0\r\ntrue xterm\r\n", out.stdout)
	status, _ = a.ask("GET", "/health", nil)
	require.Equal(t, 204, status)
	status, _ = a.ask("DELETE", "/runners/"+runner, nil)
	require.Equal(t, 204, status)
	status, text = a.ask("GET", "/runners/"+runner+"/files", nil)
	require.Equal(t, 410, status)
	require.JSONEq(t, `{"message":"abstract manager wrapped: no runner found with this id"}`, text)
	status, _ = a.ask("DELETE", "/execution-environments/11", nil)
	require.Equal(t, 204, status)
}

// What clients and guests do wrong, while executions run.
func TestFaultsAroundExecutions(t *testing.T) {
	t.Parallel()
	a := dev(t)
	a.putEnvironment("12", 2)
	runner := a.claim(12)

	// a second connect to the same execution
	_, text := a.ask("POST", "/runners/"+runner+"/execute", map[string]any{"command": "sleep 1"})
	var r struct{ WebsocketURL string }
	require.NoError(t, json.Unmarshal([]byte(text), &r))
	first, _, err := websocket.DefaultDialer.DialContext(t.Context(), r.WebsocketURL, nil)
	require.NoError(t, err)
	_, res, err := websocket.DefaultDialer.DialContext(t.Context(), r.WebsocketURL, nil)
	require.Error(t, err)
	require.Equal(t, http.StatusNotFound, res.StatusCode)
	require.NoError(t, res.Body.Close())
	require.NoError(t, first.Close())

	// a client that vanishes takes its execution with it, and nothing else
	gone := a.connect(runner, map[string]any{"command": "exec sleep 98765"})
	require.NoError(t, gone.UnderlyingConn().Close())
	eventually(t, "the end of what the client left", func() (bool, string) {
		out := a.execute(runner, map[string]any{"command": "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -c 'sleep 9876[5]'"}, "")
		return out.stdout == "0\r\n", out.stdout
	})

	// a client that reads slowly gets everything
	slow := a.connect(runner, map[string]any{"command": "head -c 8000000 /dev/zero | tr '\\0' x"})
	got, exit := 0, -1
	pause := time.NewTicker(time.Millisecond)
	defer pause.Stop()
	for exit < 0 {
		_, message, err := slow.ReadMessage()
		require.NoError(t, err)
		var m struct {
			Type string
			Data any
		}
		require.NoError(t, json.Unmarshal(message, &m))
		switch m.Type {
		case "stdout":
			got += len(m.Data.(string))
			<-pause.C
		case "exit":
			exit = int(m.Data.(float64))
		}
	}
	require.NoError(t, slow.Close())
	require.Equal(t, 8_000_000, got)
	require.Zero(t, exit)

	// a limit that is hit about when the program ends: one or the other, and the runner stays usable
	for range 3 {
		out := a.execute(runner, map[string]any{"command": "sleep 1; exit 4", "timeLimit": 1}, "")
		last := out.types[len(out.types)-1]
		require.True(t, last == "timeout" || last == "exit" && out.exit == 4, "%+v", out)
	}

	// too much memory
	out := a.execute(runner, map[string]any{"command": "python3 -c 'x = bytearray(300 << 20)'"}, "")
	require.Equal(t, "error", out.types[len(out.types)-1], "%+v", out)
	status, _ := a.ask("POST", "/runners/"+runner+"/execute", map[string]any{"command": "true"})
	require.Equal(t, 410, status, "a runner whose memory was not enough is not used again")
	eventually(t, "the pool at its size", func() (bool, string) {
		p := a.pool("12")
		return p.IdleRunners == 2 && p.UsedRunners == 0, fmt.Sprint(p)
	})
}

// What is wrong is answered with the reason, and nothing is changed.
func TestBadNativeRequestsChangeNothing(t *testing.T) {
	t.Parallel()
	a := dev(t)
	c := a.native()
	_, _, err := c.PutEnvironmentAndWait(t.Context(), execution.Environment{ID: "e", Image: "host", PoolSize: 1, MemoryMaxMB: 64},
		time.Minute)
	require.NoError(t, err)
	r, err := c.Claim(t.Context(), execution.ClaimRequest{Environment: "e", Wait: time.Minute})
	require.NoError(t, err)
	for _, x := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"PUT", "/environment/f", `{"image":`, 400, "too early"},
		{"PUT", "/environment/f", `{"image":"host","colour":1}`, 400, "colour"},
		{"PUT", "/environment/f", `{}`, 400, "image"},
		{"PUT", "/environment/f", `{"image":"host","poolSize":-1}`, 400, "poolSize"},
		{"PUT", "/environment/f", `{"image":"host","poolSize":99999999999}`, 400, "poolSize"},
		{"PUT", "/environment/f", `{"image":"host","memoryMB":1e99}`, 400, "memoryMB"},
		{"PUT", "/environment/f?wait=soon", `{"image":"host"}`, 400, "wait"},
		{"PUT", "/environment/f", `{"id":"g","image":"host"}`, 400, "path"},
		{"GET", "/environment/f", ``, 404, "not found"},
		{"POST", "/runners", `{}`, 400, "environment"},
		{"POST", "/runners", `{"environment":"f"}`, 404, "not found"},
		{"POST", "/runners", `{"environment":"e","limits":{"memoryMB":65}}`, 400, "memoryMB"},
		{"POST", "/runners", `{"environment":"e","env":{"":"x"}}`, 400, "env"},
		{"POST", "/runner/" + r.ID + "/executions", `{}`, 400, "argv"},
		{"POST", "/runner/" + r.ID + "/executions", `{"command":"x","argv":["y"]}`, 400, "one of them"},
		{"POST", "/runner/" + r.ID + "/executions", `{"argv":["x"],"limits":{"wall":-1}}`, 400, "limits.wall"},
		{"POST", "/runner/" + r.ID + "/executions", `{"argv":["x"],"webhook":"file:///etc/passwd"}`, 400, "webhook"},
		{"POST", "/runner/none/executions", `{"argv":["x"]}`, 404, "not found"},
		{"GET", "/execution/none", ``, 404, "not found"},
		{"POST", "/execution/none/signal", `{"signal":"INT"}`, 404, "not found"},
		{"GET", "/runner/" + r.ID + "/file?path=/no/such", ``, 404, "no such"},
		{"PATCH", "/runner/" + r.ID, `{"idleTimeout":9223372036854775807}`, 400, "idleTimeout"},
		{"DELETE", "/runners", ``, 405, ""},
	} {
		status, text := a.request(x.method, "/v1"+x.path, x.body)
		require.Equal(t, x.status, status, "%s %s %s: %s", x.method, x.path, x.body, text)
		require.Contains(t, text, x.want, "%s %s %s", x.method, x.path, x.body)
	}
	pool, err := c.AwaitPool(t.Context(), "e", time.Minute)
	require.NoError(t, err)
	require.Equal(t, execution.PoolStatus{Environment: "e", Size: 1, Warm: 1, Claimed: 1}, pool)
	envs, err := c.Environments(t.Context())
	require.NoError(t, err)
	require.Len(t, envs, 1)
	escape(t, c, r.ID)
}

// escape tries to reach files outside of the runner.
func escape(t *testing.T, c *client.Client, runner string) {
	t.Helper()
	require.NoError(t, c.ChangeFiles(t.Context(), runner, execution.FileChange{
		Path: "../../../../../../../../tmp/mine", Write: true,
		Data: []byte("x"),
	}))
	x, err := c.StartExecution(t.Context(), runner, execution.Request{Command: "cat /tmp/mine; ln -s /proc/1/root/etc/shadow /tmp/link; ls " +
		"-la /tmp"})
	require.NoError(t, err)
	x, err = c.WaitExecution(t.Context(), x.ID)
	require.NoError(t, err)
	require.Zero(t, x.Receipt.ExitCode)
	_, err = c.ReadFile(t.Context(), runner, execution.FileRequest{Path: "/tmp/link"})
	require.Contains(t, []drover.Code{drover.NotFound, drover.Forbidden}, drover.CodeOf(err))
}
