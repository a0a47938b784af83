package telemetry

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/usage"
)

func TestAllocAndHostMetrics(t *testing.T) {
	t.Parallel()
	m := NewMetrics(clock.Wall{})
	a := m.Allocs()
	alloc := &drover.Allocation{ID: "a1", JobID: "web", TaskGroup: "g", Namespace: "default", AllocatedResources: &drover.AllocatedResources{
		Tasks: map[string]*drover.AllocatedTaskResources{"t": {
			Cpu: drover.AllocatedCpuResources{CpuShares: 5}, Memory: drover.AllocatedMemoryResources{MemoryMB: 1},
		}},
	}}
	a.Sample(alloc, "t", &usage.TaskResourceUsage{ResourceUsage: &usage.ResourceUsage{
		MemoryStats: &usage.MemoryStats{RSS: 4096, Measured: []string{"RSS", "Swap"}}, CpuStats: &usage.CpuStats{Percent: 12.5},
	}})
	a.Sample(alloc, "t", nil)
	sick := errors.New("no sample yet")
	m.Source(HostMetrics(func() *drover.Node { return &drover.Node{ID: "n1"} }, func() (*usage.HostStats, error) {
		return &usage.HostStats{
			Memory: &usage.HostMemoryStats{Total: 7}, CPU: []*usage.HostCPUStats{{CPU: "cpu0", Idle: 50}},
			DiskStats: []*usage.HostDiskStats{{Device: "sda"}},
		}, sick
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
	require.Contains(t, got, "nomad_client_allocs_memory_allocated"+labels+" 1.048576e+06")
	require.Contains(t, got, "nomad_client_allocs_cpu_allocated"+labels+" 5")
	require.NotContains(t, got, "nomad_client_host")
	sick = nil
	require.Contains(t, text(), `nomad_client_host_cpu_idle{cpu="cpu0",datacenter="",node_class="none",node_id="n1",node_pool=""} 50`)
	a.Ended(alloc, "t", true, true)
	got = text()
	require.NotContains(t, got, labels)
	require.Contains(t, got, `nomad_client_allocs_oom_killed{job="web",namespace="default",task_group="g"} 1`)
	require.Contains(t, got, `nomad_client_allocs_failed{job="web",namespace="default",task_group="g"} 1`)
	for i := range 3 { // a judge dispatches millions
		child := &drover.Job{ID: fmt.Sprintf("judge/dispatch-%d", i), ParentID: "judge"}
		a.Ended(&drover.Allocation{ID: child.ID, JobID: child.ID, Job: child, TaskGroup: "g", Namespace: "default"}, "t", false, false)
	}
	got = text()
	require.Contains(t, got, `nomad_client_allocs_complete{job="judge",namespace="default",task_group="g"} 3`)
	require.NotContains(t, got, "dispatch-")
}

// TestTicksAreAddedUp: as Nomad adds up its samples, one a second.
func TestTicksAreAddedUp(t *testing.T) {
	t.Parallel()
	m := NewMetrics(clock.Wall{})
	a, alloc := m.Allocs(), &drover.Allocation{ID: "a1"}
	at := time.Unix(100, 0).UnixNano()
	m.Source(HostMetrics(func() *drover.Node { return &drover.Node{ID: "n1"} }, func() (*usage.HostStats, error) {
		return &usage.HostStats{Timestamp: at, CPU: []*usage.HostCPUStats{{CPU: "cpu0", TotalTicks: 50}}}, nil
	}))
	text := func() string {
		w := httptest.NewRecorder()
		m.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v1/metrics?format=prometheus", nil))
		return w.Body.String()
	}
	var got string
	for range 4 { // the first has no time before it
		used := &usage.ResourceUsage{CpuStats: &usage.CpuStats{TotalTicks: 10}}
		a.Sample(alloc, "t", &usage.TaskResourceUsage{Timestamp: at, ResourceUsage: used})
		_, got = text(), text() // a sample counts once
		at += (2 * time.Second).Nanoseconds()
	}
	require.Contains(t, got, `nomad_client_allocs_cpu_total_ticks_count{alloc_id="a1",job="",namespace="",task="t",task_group=""} 60`)
	require.Contains(t, got, `nomad_client_host_cpu_total_ticks_count`+
		`{cpu="cpu0",datacenter="",node_class="none",node_id="n1",node_pool=""} 300`)
}

// TestWorkMetrics: what has ended holds nothing, and what a node was given is told beside what is left.
func TestWorkMetrics(t *testing.T) {
	t.Parallel()
	m := NewMetrics(clock.Wall{})
	node := node(1000, 500, 0)
	holds := &drover.AllocatedResources{Tasks: map[string]*drover.AllocatedTaskResources{"t": {
		Cpu: drover.AllocatedCpuResources{CpuShares: 300}, Memory: drover.AllocatedMemoryResources{MemoryMB: 100, MemoryMaxMB: 200},
	}}}
	said := func(status, state string, restarts uint64) exchange.AllocUpdate {
		return exchange.AllocUpdate{ClientStatus: status, TaskStates: map[string]*drover.TaskState{
			"t": {State: state, Restarts: restarts, StartedAt: time.Unix(1, 0)},
		}}
	}
	m.Source(WorkMetrics(func() *drover.Node { return node }, func(yield func(*drover.Allocation, exchange.AllocUpdate) bool) {
		_ = yield(&drover.Allocation{ID: "a", JobID: "j", AllocatedResources: holds}, said("running", "running", 2)) &&
			yield(&drover.Allocation{ID: "b", JobID: "j", AllocatedResources: holds}, said("complete", "dead", 0)) &&
			yield(&drover.Allocation{ID: "c", JobID: "j"}, exchange.AllocUpdate{})
	}))
	w := httptest.NewRecorder()
	m.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v1/metrics?format=prometheus", nil))
	labels := `{datacenter="",node_class="none",node_id="n1",node_pool=""} `
	for name, want := range map[string]string{
		"allocations_running": "1", "allocations_terminal": "1", "allocations_pending": "1", "allocations_blocked": "0",
		"tasks_running": "1", "tasks_dead": "1",
		"allocated_cpu": "300", "unallocated_cpu": "700", "allocated_memory": "100", "unallocated_memory": "400", "allocated_max_memory": "200",
	} {
		require.Contains(t, w.Body.String(), "\nnomad_client_"+name+labels+want+"\n")
	}
	require.Contains(t, w.Body.String(), `nomad_client_allocs_running{alloc_id="a",job="j",namespace="",task="t",task_group=""} 3`)
}
