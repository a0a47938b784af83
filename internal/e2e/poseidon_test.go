package e2e

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"
)

// outcome is what a websocket said.
type outcome struct {
	stdout, stderr string
	types          []string
	exit           int
	code           int // of the close frame
}

func (a *agent) execute(runner string, request map[string]any, stdin string) outcome {
	a.t.Helper()
	status, text := a.ask("POST", "/runners/"+runner+"/execute", request)
	require.Equal(a.t, 200, status, text)
	var r struct {
		WebsocketURL string `json:"websocketUrl"`
	}
	require.NoError(a.t, json.Unmarshal([]byte(text), &r))
	ws, _, err := websocket.DefaultDialer.DialContext(a.t.Context(), r.WebsocketURL, nil)
	require.NoError(a.t, err)
	defer ws.Close()
	if stdin != "" {
		require.NoError(a.t, ws.WriteMessage(websocket.TextMessage, []byte(stdin)))
	}
	out := outcome{exit: -1}
	for {
		_, message, err := ws.ReadMessage()
		if err != nil {
			var closed *websocket.CloseError
			require.ErrorAs(a.t, err, &closed)
			out.code = closed.Code
			return out
		}
		var m struct {
			Type string
			Data any
		}
		require.NoError(a.t, json.Unmarshal(message, &m))
		out.types = append(out.types, m.Type)
		switch m.Type {
		case "stdout":
			out.stdout += m.Data.(string)
		case "stderr":
			out.stderr += m.Data.(string)
		case "exit":
			out.exit = int(m.Data.(float64))
		}
	}
}

// Who claims after a replacement gets a runner of the new kind, however warm the old ones are.
func TestAReplacedEnvironmentServesNewRunners(t *testing.T) {
	t.Parallel()
	a := dev(t)
	a.putEnvironment("13", 5)
	status, text := a.ask("PUT", "/execution-environments/13", map[string]any{
		"image": "host", "prewarmingPoolSize": 5, "cpuLimit": 30,
		"memoryLimit": 142,
	})
	require.Equal(t, 204, status, text)
	_, alloc, _ := strings.Cut(a.claim(13), "-")
	status, text = a.request("GET", "/v1/allocation/"+alloc, "")
	require.Equal(t, 200, status)
	require.Contains(t, text, `"CpuShares":30`)
}

// Code gets executed over the API that CodeOcean speaks.
func TestCodeIsExecutedOverPoseidonsAPI(t *testing.T) {
	t.Parallel()
	a := dev(t)
	a.putEnvironment("10", 3)
	runner := a.claim(10)
	eventually(t, "the pool to refill itself", func() (bool, string) {
		p := a.pool("10")
		return p.IdleRunners == 3 && p.UsedRunners == 1, ""
	})
	program := base64.StdEncoding.EncodeToString([]byte("import sys\nname = input()\nprint('hello', name)\nprint('oops', " +
		"file=sys.stderr)\nsys.exit(3)\n"))
	status, text := a.ask("PATCH", "/runners/"+runner+"/files", map[string]any{
		"delete": []string{"./*"}, "copy": []map[string]any{
			{"path": "dir/"},
			{"path": "main.py", "content": program},
			{"path": "dir/data.txt", "content": "aGk="},
		},
	})
	require.Equal(t, 204, status, text)
	out := a.execute(runner, map[string]any{"command": "/usr/bin/python3 main.py", "timeLimit": 30, "privilegedExecution": false}, "drover\n")
	require.Equal(t, 3, out.exit, "%+v", out)
	require.Equal(t, "start", out.types[0])
	require.Equal(t, "exit", out.types[len(out.types)-1])
	require.Contains(t, out.stdout, "hello drover\r\n")
	require.Equal(t, "oops\n", strings.ReplaceAll(out.stderr, "\r", ""))
	require.Equal(t, websocket.CloseNormalClosure, out.code)

	status, text = a.ask("GET", "/runners/"+runner+"/files?path=./&recursive=true", nil)
	require.Equal(t, 200, status)
	require.Contains(t, text, `"./dir/data.txt"`)
	status, text = a.ask("GET", "/runners/"+runner+"/files/raw?path=dir/data.txt", nil)
	require.Equal(t, 200, status)
	require.Equal(t, "hi", text)

	out = a.execute(runner, map[string]any{"command": "ln -s dir way; ln -s nowhere broken"}, "")
	require.Equal(t, 0, out.exit, "%+v", out)
	for path, want := range map[string]string{ // as ls -l shows them
		"way": `{"files": [{"name":"way","entryType":"l","linkTarget":"dir"`, "way/": `{"files": [{"name":"way/data.txt"`,
		"./broken": `{"files": [{"name":"./broken","entryType":"l","linkTarget":"nowhere"`,
	} {
		status, text = a.ask("GET", "/runners/"+runner+"/files?path="+path, nil)
		require.Equal(t, 200, status, text)
		require.Contains(t, text, want)
	}

	out = a.execute(runner, map[string]any{"command": "sleep 100", "timeLimit": 1}, "")
	require.Equal(t, "timeout", out.types[len(out.types)-1])
	out = a.execute(runner, map[string]any{"command": "echo still here"}, "")
	require.Equal(t, "still here\r\n", out.stdout)

	status, _ = a.ask("DELETE", "/runners/"+runner, nil)
	require.Equal(t, 204, status)
	status, text = a.ask("DELETE", "/runners/"+runner, nil)
	require.Equal(t, 410, status)
	require.Contains(t, text, "message")
	eventually(t, "the runner to be gone", func() (bool, string) { p := a.pool("10"); return p.UsedRunners == 0 && p.IdleRunners == 3, "" })
}

func TestBadExecutionRequestsChangeNothing(t *testing.T) {
	t.Parallel()
	a := dev(t)
	a.putEnvironment("7", 1)
	runner := a.claim(7)
	for _, c := range []struct {
		method, path string
		body         any
		status       int
		want         string
	}{
		{"PUT", "/execution-environments/8", `{"image":`, 400, "message"},
		{"PUT", "/execution-environments/8", `{"image":"host","prewarmingPoolSize":-1}`, 400, "prewarmingPoolSize"},
		{"PUT", "/execution-environments/8", `{"image":"","prewarmingPoolSize":1}`, 400, "image"},
		{"PUT", "/execution-environments/8", `{"image":"/no/such/file.tar","prewarmingPoolSize":1}`, 400, "no such file"},
		{"GET", "/execution-environments/8", nil, 404, ""},
		{"DELETE", "/execution-environments/8", nil, 404, ""},
		{"POST", "/runners", `{"executionEnvironmentId":99}`, 404, "message"},
		{"POST", "/runners", `[]`, 400, "message"},
		{"POST", "/runners/7-unknown/execute", `{"command":"true"}`, 410, "message"},
		{"POST", "/runners/" + runner + "/execute", `{"command":5}`, 400, "of type string"},
		{"PATCH", "/runners/" + runner + "/files", `{"copy":[{"path":"x","content":"%%%"}]}`, 400, "message"},
		{"GET", "/runners/" + runner + "/files?path=/no/such", nil, 424, "message"},
		{"GET", "/runners/" + runner + "/files/raw?path=none", nil, 424, "file not found"},
	} {
		status, text := a.ask(c.method, c.path, c.body)
		require.Equal(t, c.status, status, "%s %s %v: %s", c.method, c.path, c.body, text)
		require.Contains(t, text, c.want, "%s %s", c.method, c.path)
	}
	_, res, err := websocket.DefaultDialer.DialContext(t.Context(), "ws://"+a.addr+"/api/v1/runners/"+runner+"/websocket?executionID=none",
		nil)
	require.Error(t, err)
	require.Equal(t, http.StatusNotFound, res.StatusCode)
	require.NoError(t, res.Body.Close())
	out := a.execute(runner, map[string]any{"command": "/no/such/program"}, "")
	require.Equal(t, 127, out.exit)
}
