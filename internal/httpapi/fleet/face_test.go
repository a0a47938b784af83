package fleet

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/httpapi"
)

// herd is a fleet of one machine.
type herd struct {
	Fleet
	asked []string
}

func (h *herd) PutPool(_ context.Context, p *fleet.Policy) error {
	h.asked = append(h.asked, "put "+p.Name)
	return nil
}

func (h *herd) Pool(_ context.Context, name string) (fleet.PoolStatus, error) {
	return fleet.PoolStatus{Pool: fleet.Pool{Name: name}}, nil
}

func (h *herd) Instances(context.Context, string) ([]fleet.Instance, error) {
	return []fleet.Instance{{Durable: fleet.Durable{
		ID: "i1", ProviderID: "c1", NodeID: "n1", State: fleet.InstanceActive,
		Behavior: fleet.BehaviorRun, Price: 0.5,
	}, Type: "t", Work: 1}}, nil
}

func (h *herd) Behave(_ context.Context, id string, b fleet.IdleBehavior, reason string) error {
	if id != "i1" && id != "c1" {
		return drover.Errorf(drover.NotFound, "no instance %q", id)
	}
	h.asked = append(h.asked, string(b)+" "+id+" "+reason)
	return nil
}

func (h *herd) Kill(_ context.Context, id, reason string) error {
	h.asked = append(h.asked, "kill "+id+" "+reason)
	return nil
}

func (h *herd) Waiting(context.Context, string) ([]fleet.Waiting, error) {
	return []fleet.Waiting{{Class: "job/g", Count: 3, Priority: 50, Each: drover.Capacity{CPU: 1500, MemoryMB: 10}, Reason: "first of 3"}}, nil
}

func (h *herd) Running(context.Context) ([]*drover.Allocation, error) {
	return []*drover.Allocation{{ID: "a1", Name: "job.g[0]", NodeID: "n1", ClientStatus: drover.AllocClientRunning}}, nil
}

func (h *herd) StopAllocation(_ context.Context, id, reason string) error {
	h.asked = append(h.asked, "stop "+id+" "+reason)
	return nil
}

func serve(t *testing.T) (*herd, func(method, target, body string) (int, string)) {
	t.Helper()
	h := &herd{}
	handler := httpapi.Handler(httpapi.Config{Logger: slog.New(slog.DiscardHandler), Clock: clock.Wall{}, Resolver: httpapi.OneToken("s")},
		&Face{Fleet: h, Work: h, Metrics: http.NotFoundHandler()})
	return h, func(method, target, body string) (int, string) {
		r := httptest.NewRequestWithContext(t.Context(), method, target, strings.NewReader(body))
		r.Host = "127.0.0.1"
		if strings.Contains(body, "=") {
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		r.Header.Set("Authorization", "Bearer s")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
}

func TestOperatorsBid(t *testing.T) {
	t.Parallel()
	h, ask := serve(t)
	for _, x := range []struct {
		method, target, body string
		status               int
		want                 string
	}{
		{"PUT", "/v1/fleet/instance/i1/hold", `{"Reason":"look"}`, 204, ""},
		{"POST", "/v1/fleet/instance/i1/kill?reason=enough", "", 204, ""},
		{"PUT", "/v1/fleet/instance/i9/hold", "", 404, `"code":"not_found"`},
		{"PUT", "/v1/fleet/instance/i1/dance", "", 404, "hold, drain, run or kill"},
		{"PUT", "/v1/fleet/instance/i1/hold", "[", 400, "JSON"},
		{"PUT", "/v1/fleet/pool/p", `{"Colour":1}`, 400, "Colour"},
		{"PUT", "/v1/fleet/pool/p", `{"Name":"q"}`, 400, "the path says"},
		{"PUT", "/v1/fleet/pool/p", `{}`, 200, `"Name":"p"`},
		{"DELETE", "/v1/fleet/instances", "", 405, "invalid"},
		{"GET", "/v1/fleet/instances?state=active", "", 200, `"State":"active"`},
		{"GET", "/v1/fleet/instances?state=booting", "", 200, "[]"},
	} {
		status, text := ask(x.method, x.target, x.body)
		require.Equal(t, x.status, status, "%s %s: %s", x.method, x.target, text)
		require.Contains(t, text, x.want)
	}
	require.Equal(t, []string{"hold i1 look", "kill i1 enough", "put p"}, h.asked)
}

func TestArvadosPaths(t *testing.T) {
	t.Parallel()
	h, ask := serve(t)
	status, text := ask("GET", "/arvados/v1/dispatch/instances", "")
	require.Equal(t, 200, status)
	require.JSONEq(t, `{"items":[{"instance":"c1","address":"","price":0.5,"arvados_instance_type":"t","provider_instance_type":"t",`+
		`"last_container_uuid":"a1",`+
		`"last_busy":"0001-01-01T00:00:00Z","running_container_uuids":["a1"],"worker_state":"running","idle_behavior":"run"}]}`, text)
	status, text = ask("GET", "/arvados/v1/dispatch/containers", "")
	require.Equal(t, 200, status)
	require.Contains(t, text, `"scheduling_status":"first of 3"`)
	require.Contains(t, text, `"uuid":"a1"`)
	status, text = ask("GET", "/arvados/v1/dispatch/container?container_uuid=a1", "")
	require.Equal(t, 200, status, text)
	status, text = ask("GET", "/arvados/v1/dispatch/container?container_uuid=a9", "")
	require.Equal(t, 404, status, text)
	require.JSONEq(t, `{"errors":["container not found: \"a9\""]}`, text)
	status, _ = ask("POST", "/arvados/v1/dispatch/instances/drain", "instance_id=c1")
	require.Equal(t, 200, status)
	status, _ = ask("POST", "/arvados/v1/dispatch/instances/kill", "")
	require.Equal(t, 400, status)
	status, _ = ask("POST", "/arvados/v1/dispatch/containers/kill", "container_uuid=a1&reason=why")
	require.Equal(t, 200, status)
	require.Contains(t, h.asked[0], "drain c1 ")
	require.Equal(t, "stop a1 why", h.asked[1])
	status, text = ask("GET", "/_health/ping", "")
	require.Equal(t, 200, status, text)
}

func TestTokensAsInArvados(t *testing.T) {
	t.Parallel()
	handler := httpapi.Handler(httpapi.Config{Logger: slog.New(slog.DiscardHandler), Clock: clock.Wall{}, Resolver: httpapi.OneToken("s")},
		&Face{Fleet: &herd{}, Work: &herd{}})
	for token, want := range map[string]int{"": 401, "Bearer wrong": 403} {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/arvados/v1/dispatch/instances", nil)
		r.Host = "127.0.0.1"
		if token != "" {
			r.Header.Set("Authorization", token)
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		require.Equal(t, want, w.Code, w.Body.String())
		require.Contains(t, w.Body.String(), "errors")
	}
	require.Equal(t, "booting", workerState(&fleet.Instance{Durable: fleet.Durable{State: fleet.InstanceBooting, StateAt: time.Now()}}))
}
