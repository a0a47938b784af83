package server

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/config"
	"github.com/drover-project/drover/internal/config/pages"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/telemetry"
)

// serverOnly builds an agent without a node that keeps nothing; it leads, and serves nothing.
func serverOnly(t *testing.T, change func(*config.Agent)) *Agent {
	t.Helper()
	cfg := config.Merge(config.Default(), &config.Agent{Name: "s1", Dev: true, Server: &config.Server{Enabled: new(true)}})
	cfg.Ports.HTTP, cfg.Ports.RPC = 0, 0
	if change != nil {
		change(cfg)
	}
	ring := telemetry.NewRing(slog.DiscardHandler)
	a, err := New(t.Context(), cfg, Deps{Log: slog.New(ring), Ring: ring, Clock: clock.Wall{}, IDs: id.Random{}})
	require.NoError(t, err)
	t.Cleanup(a.close)
	return a
}

// asked returns the faces' answer to a request of this machine.
func asked(t *testing.T, h http.Handler, method, path, body string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	q := httptest.NewRequestWithContext(t.Context(), method, "http://127.0.0.1:4646"+path, strings.NewReader(body))
	for i := 0; i+1 < len(header); i += 2 {
		q.Header.Set(header[i], header[i+1])
	}
	reply := httptest.NewRecorder()
	h.ServeHTTP(reply, q)
	return reply
}

// All faces are served on the one port, and each answers in its own dialect.
func TestFacesAreJoined(t *testing.T) {
	t.Parallel()
	h, err := serverOnly(t, nil).handler()
	require.NoError(t, err)
	for path, want := range map[string]string{
		"/v1/agent/self":                 `"NodeName":"s1"`,
		"/v1/jobs":                       "[]",
		"/v1/environments":               "[]",
		"/api/v1/version":                `"`,
		"/api/v1/execution-environments": `"executionEnvironments"`,
		"/v1/status/leader":              `"`,
		"/v1/agent/health?type=server":   `"ok":true`,
	} {
		reply := asked(t, h, http.MethodGet, path, "")
		require.Equal(t, http.StatusOK, reply.Code, "%s: %s", path, reply.Body)
		require.Contains(t, reply.Body.String(), want, path)
	}
	require.Equal(t, http.StatusNotFound, asked(t, h, http.MethodGet, "/v1/nothing", "").Code)
}

// The one token opens all faces, in the header of each.
func TestTheTokenIsAskedForByAllFaces(t *testing.T) {
	t.Parallel()
	h, err := serverOnly(t, func(c *config.Agent) { c.APIToken = "secret" }).handler()
	require.NoError(t, err)
	for path, header := range map[string]string{
		"/v1/jobs": "X-Nomad-Token", "/api/v1/execution-environments": "Poseidon-Token", "/v1/environments": "Authorization",
	} {
		require.GreaterOrEqual(t, asked(t, h, http.MethodGet, path, "").Code, 400, path)
		require.GreaterOrEqual(t, asked(t, h, http.MethodGet, path, "", header, "wrong").Code, 400, path)
		token := "secret"
		if header == "Authorization" {
			token = "Bearer " + token
		}
		require.Equal(t, http.StatusOK, asked(t, h, http.MethodGet, path, "", header, token).Code, path)
	}
}

// A web page of elsewhere, and one that had its own name resolve to the agent, get nothing.
func TestPagesOfElsewhereAreRefused(t *testing.T) {
	t.Parallel()
	h, err := serverOnly(t, func(c *config.Agent) { c.AllowedOrigins = []string{"https://ide.example"} }).handler()
	require.NoError(t, err)
	require.Equal(t, http.StatusForbidden, asked(t, h, http.MethodGet, "/v1/jobs", "", "Origin", "https://evil.example").Code)
	require.Equal(t, http.StatusOK, asked(t, h, http.MethodGet, "/v1/jobs", "", "Origin", "https://ide.example").Code)
	q := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://evil.example/v1/jobs", nil)
	reply := httptest.NewRecorder()
	h.ServeHTTP(reply, q)
	require.GreaterOrEqual(t, reply.Code, 400)
	require.NotContains(t, reply.Body.String(), "[]")
}

// What is switched off says so, or is not there.
func TestFacesThatAreSwitchedOff(t *testing.T) {
	t.Parallel()
	on, err := serverOnly(t, nil).handler()
	require.NoError(t, err)
	require.NotEqual(t, http.StatusNotFound, asked(t, on, http.MethodGet, "/ui/", "").Code)
	off, err := serverOnly(t, func(c *config.Agent) {
		c.UI, c.Server.EventBroker = &pages.UI{Enabled: new(false)}, new(false)
	}).handler()
	require.NoError(t, err)
	require.Equal(t, http.StatusNotFound, asked(t, off, http.MethodGet, "/ui/", "").Code)
	stream := asked(t, off, http.MethodGet, "/v1/event/stream", "")
	require.Equal(t, http.StatusNotImplemented, stream.Code)
	require.Contains(t, stream.Body.String(), "server.enable_event_broker is false")
	// Pages still hear of changes.
	ctx, leave := context.WithCancel(t.Context())
	leave() // the stream ends after its first line
	brief := httptest.NewRecorder()
	path := "http://127.0.0.1:4646/v1/event/stream?brief=true&topic=Job"
	off.ServeHTTP(brief, httptest.NewRequestWithContext(ctx, http.MethodGet, path, http.NoBody))
	require.Equal(t, http.StatusOK, brief.Code, brief.Body)
	require.Contains(t, brief.Body.String(), `"Index"`)
}

// limits.max_body_bytes bounds what a request may carry.
func TestBodiesAreBounded(t *testing.T) {
	t.Parallel()
	h, err := serverOnly(t, func(c *config.Agent) { c.Limits = &config.Limits{MaxBodyBytes: 100} }).handler()
	require.NoError(t, err)
	long := `{"Job":{"ID":"` + strings.Repeat("x", 200) + `"}}`
	require.Equal(t, http.StatusRequestEntityTooLarge, asked(t, h, http.MethodPost, "/v1/jobs", long).Code)
}

func TestWhatTheAgentSaysOfItself(t *testing.T) {
	t.Parallel()
	a := serverOnly(t, func(c *config.Agent) { c.APIToken, c.Server.NumSchedulers = "secret", new(3) })
	info := a.info()
	self, err := json.Marshal(info.Self())
	require.NoError(t, err)
	require.NotContains(t, string(self), `"secret"`)
	require.Equal(t, map[string]string{"server": "true", "leader": "true", "leader_addr": info.Leader()}, info.Self().Stats["nomad"])
	require.Equal(t, "s1.global", info.Members()[0].Name)
	require.Equal(t, []string{info.Leader()}, info.Peers())
	require.Empty(t, info.LocalNode())
	n, _, _ := info.Schedulers()
	require.Equal(t, 3, n)
	require.NoError(t, info.SetSchedulers(1, []string{"system"}))
	n, types, _ := info.Schedulers()
	require.Equal(t, 1, n)
	require.Equal(t, []string{"system"}, types)
	require.ErrorContains(t, info.SetSchedulers(1, []string{"magic"}), "no scheduler")
	server, client := info.Health()
	require.True(t, server.Ok)
	require.Nil(t, client)
	raft := info.Raft()
	require.Len(t, raft.Servers, 1)
	require.True(t, raft.Servers[0].Leader)

	tail, err := info.Logs("info", false)
	require.NoError(t, err)
	defer tail.Close()
	a.deps.Log.Info("a line")
	line, err := tail.Next(t.Context())
	require.NoError(t, err)
	require.Contains(t, string(line), "a line")
	_, err = info.Logs("loud", false)
	require.Error(t, err)
	a.deps.Ring = nil
	_, err = a.info().Logs("info", false)
	require.Equal(t, drover.NotImplemented, drover.CodeOf(err))
}

// The configured scheduler's settings count until the API changed them.
func TestTheFirstSchedulerConfig(t *testing.T) {
	t.Parallel()
	a := serverOnly(t, func(c *config.Agent) {
		c.Server.SchedulerConfig = &config.SchedulerConfig{Algorithm: "spread", Preemption: &config.Preemption{Batch: new(true)}}
	})
	got := a.control.store.Snapshot().SchedulerConfig()
	require.Equal(t, "spread", got.SchedulerAlgorithm)
	require.True(t, got.PreemptionConfig.SystemSchedulerEnabled, "as when nobody says otherwise")
	require.True(t, got.PreemptionConfig.BatchSchedulerEnabled)
	require.False(t, got.PreemptionConfig.ServiceSchedulerEnabled)
	require.NoError(t, a.control.firstSchedulerConfig(t.Context(), &config.SchedulerConfig{Algorithm: "binpack"}))
	require.Equal(t, "spread", a.control.store.Snapshot().SchedulerConfig().SchedulerAlgorithm, "what is stored counts")
}

// A second agent on the same data folder is refused, and a temporary folder goes with its agent.
func TestAnAgentHasItsFolderAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := serverOnly(t, func(c *config.Agent) { c.DataDir = dir })
	require.Equal(t, dir, first.DataDir())
	require.NotEmpty(t, first.HTTPAddr())
	cfg := config.Merge(config.Default(), &config.Agent{DataDir: dir, Server: &config.Server{Enabled: new(true)}})
	_, err := New(t.Context(), cfg, Deps{Log: slog.New(slog.DiscardHandler), Clock: clock.Wall{}, IDs: id.Random{}})
	require.Equal(t, drover.Conflict, drover.CodeOf(err))

	kept := serverOnly(t, nil)
	require.DirExists(t, kept.DataDir())
	kept.close()
	require.NoDirExists(t, kept.DataDir())
}

// A server without a node cannot ask one, and says so.
func TestNodesThatAreNotHere(t *testing.T) {
	t.Parallel()
	a := serverOnly(t, nil)
	_, err := nodesFunc(a.workloads).Workloads("n1")
	require.Equal(t, drover.Unavailable, drover.CodeOf(err))
	asked, err := a.validateTask(&drover.Task{Driver: "raw_exec"})
	require.False(t, asked)
	require.NoError(t, err)
	ready, cancel := context.WithCancel(t.Context())
	require.True(t, a.awaitNode(ready), "there is none to wait for")
	cancel()
	require.False(t, a.awaitNode(ready))
}
