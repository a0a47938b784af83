package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/fleet"
)

// request sends a request with a text and returns status and body.
func (a *agent) request(method, path, body string) (int, string) {
	a.t.Helper()
	req, err := http.NewRequestWithContext(a.t.Context(), method, "http://"+a.addr+path, strings.NewReader(body))
	require.NoError(a.t, err)
	res, err := http.DefaultClient.Do(req)
	require.NoError(a.t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	require.NoError(a.t, err)
	return res.StatusCode, string(text)
}

// ask sends a request to the Poseidon face, with a text or what JSON is made of, and returns status and body.
func (a *agent) ask(method, path string, body any) (int, string) {
	a.t.Helper()
	text, isText := body.(string)
	if body != nil && !isText {
		data, err := json.Marshal(body)
		require.NoError(a.t, err)
		text = string(data)
	}
	return a.request(method, "/api/v1"+path, text)
}

// statistics are those of an environment, as Poseidon has them.
type statistics struct {
	ID                int
	PrewarmingPool    int `json:"prewarmingPoolSize"`
	IdleRunners, Used int
	UsedRunners       int `json:"usedRunners"`
}

// pool returns the statistics of an environment.
func (a *agent) pool(environment string) statistics {
	status, text := a.ask("GET", "/statistics/execution-environments", nil)
	require.Equal(a.t, 200, status)
	var all map[string]statistics
	require.NoError(a.t, json.Unmarshal([]byte(text), &all))
	return all[environment]
}

// putEnvironment makes an environment of this machine's files, and waits until its pool is full.
func (a *agent) putEnvironment(id string, size int) {
	status, text := a.ask("PUT", "/execution-environments/"+id, map[string]any{
		"image": "host", "prewarmingPoolSize": size, "cpuLimit": 20,
		"memoryLimit": 100, "networkAccess": false, "exposedPorts": []int{},
	})
	require.Contains(a.t, []int{201, 204}, status, text)
	eventually(a.t, "a full pool", func() (bool, string) { return a.pool(id).IdleRunners == size, text })
}

// claim claims a runner of an environment and returns its id.
func (a *agent) claim(environment int) string {
	status, text := a.ask("POST", "/runners", map[string]any{"executionEnvironmentId": environment, "inactivityTimeout": 600})
	require.Equal(a.t, 200, status, text)
	var r struct {
		RunnerID    string `json:"runnerId"`
		MappedPorts any    `json:"mappedPorts"`
	}
	require.NoError(a.t, json.Unmarshal([]byte(text), &r))
	require.Nil(a.t, r.MappedPorts)
	return r.RunnerID
}

// fleet asks the fleet's face.
func (a *agent) fleet(method, path, body string, out any) (int, string) {
	a.t.Helper()
	status, text := a.request(method, "/v1/fleet/"+path, body)
	if out != nil {
		require.Equal(a.t, 200, status, text)
		require.NoError(a.t, json.Unmarshal([]byte(text), out), text)
	}
	return status, text
}

// machines lists the machines of the fleet.
func (a *agent) machines() (list []fleet.Instance) {
	a.t.Helper()
	a.fleet("GET", "instances", "", &list)
	return list
}

// connect dials the websocket of an execution.
func (a *agent) connect(runner string, request map[string]any) *websocket.Conn {
	a.t.Helper()
	status, text := a.ask("POST", "/runners/"+runner+"/execute", request)
	require.Equal(a.t, 200, status, text)
	var r struct{ WebsocketURL string }
	require.NoError(a.t, json.Unmarshal([]byte(text), &r))
	ws, _, err := websocket.DefaultDialer.DialContext(a.t.Context(), r.WebsocketURL, nil)
	require.NoError(a.t, err)
	return ws
}
