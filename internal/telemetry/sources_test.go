package telemetry

import (
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/usage"
)

// emitted reads a source: values by name and sorted labels, without those of the node.
func emitted(t interface {
	require.TestingT
	Helper()
}, source func(Emit),
) map[string]float64 {
	t.Helper()
	got := map[string]float64{}
	source(func(name string, value float64, labels ...string) {
		require.Zero(t, len(labels)%2, "%s: labels are pairs", name)
		pairs := []string{}
		for i := 0; i < len(labels); i += 2 {
			if !strings.HasPrefix(labels[i], "node_") && labels[i] != "datacenter" {
				pairs = append(pairs, labels[i]+"="+labels[i+1])
			}
		}
		slices.Sort(pairs)
		key := strings.Join(append([]string{name}, pairs...), " ")
		_, twice := got[key]
		require.False(t, twice, "%s is emitted twice", key)
		got[key] = value
	})
	return got
}

func node(cpu, memory, disk int64) *drover.Node {
	return &drover.Node{ID: "n1", NodeResources: &drover.NodeResources{
		Cpu: drover.NodeCpuResources{CpuShares: cpu}, Memory: drover.NodeMemoryResources{MemoryMB: memory},
		Disk: drover.NodeDiskResources{DiskMB: disk},
	}}
}

func allocation(id string, cpu, memory, most int64) *drover.Allocation {
	return &drover.Allocation{ID: id, JobID: "web", TaskGroup: "g", Namespace: "default", AllocatedResources: &drover.AllocatedResources{
		Tasks: map[string]*drover.AllocatedTaskResources{"t": {
			Cpu:    drover.AllocatedCpuResources{CpuShares: cpu},
			Memory: drover.AllocatedMemoryResources{MemoryMB: memory, MemoryMaxMB: most},
		}},
		Shared: drover.AllocatedSharedResources{DiskMB: 10},
	}}
}

func said(status, task string, restarts uint64, started time.Time) exchange.AllocUpdate {
	return exchange.AllocUpdate{ClientStatus: status, TaskStates: map[string]*drover.TaskState{
		"t": {State: task, Restarts: restarts, StartedAt: started},
	}}
}

func TestWorkIsCountedByState(t *testing.T) {
	t.Parallel()
	at := time.Unix(100, 0)
	allocs := func(yield func(*drover.Allocation, exchange.AllocUpdate) bool) {
		_ = yield(allocation("pending", 100, 64, 0), said("", drover.TaskStatePending, 0, time.Time{})) &&
			yield(allocation("running", 200, 128, 512), said(drover.AllocClientRunning, drover.TaskStateRunning, 2, at)) &&
			yield(allocation("failed", 400, 256, 0), said(drover.AllocClientFailed, drover.TaskStateDead, 1, at)) &&
			yield(allocation("complete", 400, 256, 0), said(drover.AllocClientComplete, drover.TaskStateDead, 0, at))
	}
	got := emitted(t, WorkMetrics(func() *drover.Node { return node(1000, 1000, 1000) }, allocs))
	for name, want := range map[string]float64{
		"allocations.pending": 1, "allocations.running": 1, "allocations.terminal": 2, "allocations.migrating": 0,
		"allocations.blocked": 0, "tasks.pending": 1, "tasks.running": 1, "tasks.dead": 2,
		"allocated.cpu": 300, "allocated.memory": 192, "allocated.disk": 20, "allocated.max_memory": 64 + 512,
		"unallocated.cpu": 700, "unallocated.memory": 808, "unallocated.disk": 980,
	} {
		require.InDelta(t, want, got["nomad.client."+name], 0, name)
	}
	of := func(name, alloc string) (float64, bool) {
		v, ok := got["nomad.client.allocs."+name+" alloc_id="+alloc+" job=web namespace=default task=t task_group=g"]
		return v, ok
	}
	starts, ok := of("running", "running")
	require.True(t, ok)
	require.InDelta(t, 3, starts, 0, "a task that was restarted twice was started three times")
	_, ok = of("running", "pending")
	require.False(t, ok, "what never began was never started")
	restarts, _ := of("restart", "running")
	require.InDelta(t, 2, restarts, 0)
	for _, ended := range []string{"failed", "complete"} { // a storm leaves thousands, and metrics took two seconds
		_, ok = of("restart", ended)
		require.False(t, ok, "what has ended is counted by its job alone")
		_, ok = of("running", ended)
		require.False(t, ok, "what has ended is counted by its job alone")
	}
}

func TestWorkOfAnUnknownNodeIsNotTold(t *testing.T) {
	t.Parallel()
	none := func(func(*drover.Allocation, exchange.AllocUpdate) bool) {}
	require.Empty(t, emitted(t, WorkMetrics(func() *drover.Node { return nil }, none)))
	idle := emitted(t, WorkMetrics(func() *drover.Node { return node(500, 0, 0) }, none))
	require.InDelta(t, 500, idle["nomad.client.unallocated.cpu"], 0)
}

// Whatever allocations there are: what is held and what is free make up the node, and all are counted.
func TestWorkAddsUp(t *testing.T) {
	t.Parallel()
	statuses := []string{
		"", drover.AllocClientPending, drover.AllocClientRunning, drover.AllocClientFailed, drover.AllocClientComplete, drover.AllocClientLost,
	}
	rapid.Check(t, func(t *rapid.T) {
		type one struct {
			alloc *drover.Allocation
			said  exchange.AllocUpdate
		}
		list := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) one {
			a := allocation(fmt.Sprint(rapid.Int64().Draw(t, "id")), rapid.Int64Range(0, 500).Draw(t, "cpu"),
				rapid.Int64Range(0, 500).Draw(t, "memory"), 0)
			if rapid.Bool().Draw(t, "without resources") {
				a.AllocatedResources = nil
			}
			return one{a, exchange.AllocUpdate{ClientStatus: rapid.SampledFrom(statuses).Draw(t, "status")}}
		}), 0, 8).Draw(t, "allocations")
		allocs := iter.Seq2[*drover.Allocation, exchange.AllocUpdate](func(yield func(*drover.Allocation, exchange.AllocUpdate) bool) {
			for _, o := range list {
				if !yield(o.alloc, o.said) {
					return
				}
			}
		})
		got := emitted(t, WorkMetrics(func() *drover.Node { return node(2000, 3000, 4000) }, allocs))
		for name, total := range map[string]float64{"cpu": 2000, "memory": 3000, "disk": 4000} {
			require.InDelta(t, total, got["nomad.client.allocated."+name]+got["nomad.client.unallocated."+name], 0, name)
		}
		count := 0.0
		for name, v := range got {
			if strings.HasPrefix(name, "nomad.client.allocations.") {
				count += v
			}
		}
		require.InDelta(t, float64(len(list)), count, 0)
	})
}

func TestHostMetricsAreOfWhatWasMeasured(t *testing.T) {
	t.Parallel()
	stats, failure := &usage.HostStats{Uptime: 60}, error(nil)
	n := &drover.Node{ID: "n1"}
	source := HostMetrics(func() *drover.Node { return n }, func() (*usage.HostStats, error) { return stats, failure })
	require.Equal(t, []string{"nomad.client.uptime"}, slices.Sorted(maps.Keys(emitted(t, source))))
	stats.Memory = &usage.HostMemoryStats{Total: 8, Available: 4, Used: 3, Free: 1}
	stats.DiskStats = []*usage.HostDiskStats{{Device: "sda", Size: 100, Used: 30, Available: 70, UsedPercent: 30}, {Device: "sdb"}}
	got := emitted(t, source)
	require.InDelta(t, 8, got["nomad.client.host.memory.total"], 0)
	require.InDelta(t, 70, got["nomad.client.host.disk.available disk=sda"], 0)
	require.Contains(t, got, "nomad.client.host.disk.available disk=sdb")
	failure = errors.New("no sample yet")
	require.Empty(t, emitted(t, source))
	failure, stats = nil, nil
	require.Empty(t, emitted(t, source))
	stats, n = &usage.HostStats{}, nil
	require.Empty(t, emitted(t, source))
}

// A sample that is read twice counts once, and one from before the last not at all.
func TestTicksOfOneSampleCountOnce(t *testing.T) {
	t.Parallel()
	var h hostTicks
	sample := func(second int64, mhz float64) map[string]float64 {
		return h.add(&usage.HostStats{
			Timestamp: time.Unix(second, 0).UnixNano(), CPU: []*usage.HostCPUStats{{CPU: "cpu0", TotalTicks: mhz}},
		})
	}
	for _, step := range []struct {
		second    int64
		mhz, want float64
	}{{100, 1000, 0}, {101, 1000, 1000}, {101, 9999, 1000}, {100, 9999, 1000}, {103, 500, 2000}} {
		require.InDelta(t, step.want, sample(step.second, step.mhz)["cpu0"], 0, "%+v", step)
	}
}

func TestSeldomWarnsOnceAMinute(t *testing.T) {
	t.Parallel()
	var s Seldom
	var out strings.Builder
	log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))
	at := time.Unix(1000, 0)
	var levels []string
	for _, after := range []time.Duration{0, time.Second, 59 * time.Second, time.Minute, 90 * time.Second, 2 * time.Minute} {
		out.Reset()
		s.Warn(log, at.Add(after), "flood", "from", "x")
		require.Contains(t, out.String(), "msg=flood from=x")
		_, rest, _ := strings.Cut(out.String(), "level=")
		level, _, _ := strings.Cut(rest, " ")
		levels = append(levels, level)
	}
	require.Equal(t, []string{"WARN", "DEBUG", "DEBUG", "WARN", "DEBUG", "WARN"}, levels)
}
