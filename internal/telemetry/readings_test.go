package telemetry

import (
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/clock"
)

func TestFilterCountsForAllReaders(t *testing.T) {
	t.Parallel()
	m := NewMetrics(clock.Wall{})
	m.Filter([]string{"-nomad.client", "+nomad.client.allocs", "-nomad.client.allocs.cpu", "+nomad.client.host"}, true)
	m.Source(func(emit Emit) {
		for _, name := range []string{"nomad.client.uptime", "nomad.client.allocs.memory", "nomad.client.allocs.cpu.user", "nomad.nomad.x"} {
			emit(name, 1)
		}
	})
	got := map[string]bool{}
	for _, r := range m.Readings() {
		got[r.Name] = true
	}
	for name, want := range map[string]bool{
		"nomad.client.uptime": false, "nomad.client.allocs.memory": true, "nomad.client.allocs.cpu.user": false, "nomad.nomad.x": true,
	} {
		require.Equal(t, want, got[name], name)
	}
	for _, query := range []string{"", "?format=prometheus"} {
		w := httptest.NewRecorder()
		m.ServeHTTP(w, httptest.NewRequest("GET", "/v1/metrics"+query, nil))
		require.NotContains(t, w.Body.String(), "uptime")
		require.Contains(t, w.Body.String(), "memory")
	}
	m.Filter(nil, false)
	require.Empty(t, m.Readings())
}
