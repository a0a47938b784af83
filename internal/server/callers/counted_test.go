package callers

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/telemetry"
)

// What nodes and servers ask is counted under Nomad's names, and what is answered with an error apart.
func TestCallsAreCounted(t *testing.T) {
	t.Parallel()
	metrics := telemetry.NewMetrics(clock.Wall{})
	c := Counted{Samples: metrics.Samples()}
	mux := http.NewServeMux()
	mux.HandleFunc("/fine", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "a")
		w.(http.Flusher).Flush() // streams of nodes do
		_, _ = io.WriteString(w, "b")
	})
	mux.HandleFunc("/taken", func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := http.NewResponseController(w).Hijack() // as for a pipe
		if err == nil {
			_ = c.Close()
		}
	})
	s := httptest.NewUnstartedServer(c.Handler(mux))
	s.Config.ConnState = c.Accepted
	s.Start()
	defer s.Close()
	hc := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	ask := func(method, path string) (string, error) {
		r, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, nil)
		require.NoError(t, err)
		resp, err := hc.Do(r)
		if err != nil {
			return "", err
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		return string(body), err
	}
	for _, q := range [][2]string{{http.MethodPost, "/fine"}, {http.MethodGet, "/fine"}, {http.MethodPost, "/nowhere"}} {
		body, err := ask(q[0], q[1])
		require.NoError(t, err)
		require.Equal(t, q[1] == "/fine", body == "ab", body)
	}
	_, err := ask(http.MethodPost, "/taken")
	require.Error(t, err)
	s.Close()
	w := httptest.NewRecorder()
	metrics.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/metrics?format=prometheus", nil))
	for _, want := range []string{
		"nomad_nomad_rpc_request 4\n", "nomad_nomad_rpc_query 1\n", "nomad_nomad_rpc_request_error 1\n", "nomad_nomad_rpc_accept_conn 4\n",
	} {
		require.True(t, strings.Contains(w.Body.String(), want), "%s in %s", want, w.Body)
	}
}
