package fsm

import (
	"bytes"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/id"
)

// fill puts n allocations of 1,000-allocation jobs on nodes into the state, through the log.
func fill(b *bench, n, nodes int) {
	ids := id.NewSeeded(1)
	for i := range nodes {
		b.do(node(fmt.Sprintf("node-%05d", i)))
	}
	for done := 0; done < n; done += 1000 {
		j := job(fmt.Sprintf("job-%d", done), "service", 1000)
		j = b.do(&command.RegisterJob{Job: j, Time: 1}).(*drover.Job)
		b.do(planOf(j, ids, min(1000, n-done), nodes))
		b.log = nil
	}
}

func planOf(j *drover.Job, ids id.Source, n, nodes int) *command.ApplyPlans {
	allocs := make([]*drover.Allocation, n)
	metrics := &drover.AllocationMetric{NodesEvaluated: 10, NodesAvailable: map[string]int{"dc1": 10}}
	evalID := ids.New()
	for i := range allocs {
		a := placed(ids.New(), j.ID)
		a.EvalID, a.Name, a.Metrics = evalID, fmt.Sprintf("%s.g[%d]", j.ID, i), metrics
		a.NodeID = fmt.Sprintf("node-%05d", i%nodes)
		a.NodeName = a.NodeID
		allocs[i] = a
	}
	return plan(j, allocs...)
}

func BenchmarkApplyPlan1000(b *testing.B) {
	x := setup(b)
	x.f = New(store.New(), nil)
	ids := id.NewSeeded(1)
	j := x.do(register(job("j", "service", 1000))).(*drover.Job)
	var encoding, size int64
	for b.Loop() {
		began := time.Now()
		data, err := command.Encode(planOf(j, ids, 1000, 100))
		require.NoError(b, err)
		encoding += int64(time.Since(began))
		size = int64(len(data))
		x.index++
		_, err = x.f.Apply(x.index, data)
		require.NoError(b, err)
	}
	b.ReportMetric(float64(size)/1000, "bytes/alloc")
	b.ReportMetric(float64(encoding)/float64(b.N)/1000, "encode-ns/alloc")
	b.ReportMetric(float64(b.N)*1000/b.Elapsed().Seconds(), "allocs/s")
}

func BenchmarkSnapshotRestore(b *testing.B) {
	for _, n := range []int{100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			x := &bench{t: b, f: New(store.New(), nil)}
			runtime.GC()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			began := time.Now()
			fill(x, n, 1000)
			filled := time.Since(began)
			runtime.GC()
			runtime.ReadMemStats(&after)
			for b.Loop() {
				var image bytes.Buffer
				began := time.Now()
				require.NoError(b, x.f.Snapshot(&image))
				b.ReportMetric(time.Since(began).Seconds(), "snapshot-s")
				b.ReportMetric(float64(image.Len())/float64(n), "snapshot-bytes/alloc")
				began = time.Now()
				require.NoError(b, New(store.New(), nil).Restore(&image))
				b.ReportMetric(time.Since(began).Seconds(), "restore-s")
			}
			b.ReportMetric(filled.Seconds(), "fill-s")
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(n), "heap-bytes/alloc")
			runtime.KeepAlive(x)
		})
	}
}
