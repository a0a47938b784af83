package telemetry

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"drover"
	"drover/internal/clock"
)

func TestAllocAndHostMetrics(t *testing.T) {
	t.Parallel()
	m := NewMetrics(clock.Wall{})
	a := m.Allocs()
	alloc := &drover.Allocation{ID: "a1", JobID: "web", TaskGroup: "g", Namespace: "default"}
	a.Sample(alloc, "t", &drover.TaskResourceUsage{ResourceUsage: &drover.ResourceUsage{
		MemoryStats: &drover.MemoryStats{RSS: 4096, Measured: []string{"RSS", "Swap"}}, CpuStats: &drover.CpuStats{Percent: 12.5},
	}})
	a.Sample(alloc, "t", nil)
	sick := errors.New("no sample yet")
	m.Source(HostMetrics(func() *drover.Node { return &drover.Node{ID: "n1"} }, func() (*drover.HostStats, error) {
		return &drover.HostStats{Memory: &drover.HostMemoryStats{Total: 7}, CPU: []*drover.HostCPUStats{{CPU: "cpu0", Idle: 50}}, DiskStats: []*drover.HostDiskStats{{Device: "sda"}}}, sick
	}))
	text := func() string {
		w := httptest.NewRecorder()
		m.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v1/metrics?format=prometheus", nil))
		return w.Body.String()
	}
	labels := `{alloc_id="a1",job="web",namespace="default",task="t",task_group="g"}`
	got := text()
	require.Contains(t, got, "nomad_client_allocs_memory_rss"+labels+" 4096")
	require.Contains(t, got, "nomad_client_allocs_memory_swap"+labels+" 0", "measured zero is shown")
	require.NotContains(t, got, "nomad_client_allocs_memory_cache"+labels)
	require.NotContains(t, got, "nomad_client_host")
	sick = nil
	require.Contains(t, text(), `nomad_client_host_cpu_idle{cpu="cpu0",datacenter="",node_class="none",node_id="n1",node_pool=""} 50`)
	a.Ended(alloc, "t", true, true)
	got = text()
	require.NotContains(t, got, labels)
	require.Contains(t, got, `nomad_client_allocs_oom_killed{job="web",namespace="default",task_group="g"} 1`)
	require.Contains(t, got, `nomad_client_allocs_failed{job="web",namespace="default",task_group="g"} 1`)
}
