package fsm

import (
	"bytes"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
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

// BenchmarkExecutions1000 compares what an execution's start and end cost as events with what they cost as records.
func BenchmarkExecutions1000(b *testing.B) {
	for _, keeps := range []bool{false, true} {
		b.Run(map[bool]string{false: "events", true: "records"}[keeps], func(b *testing.B) {
			x := setup(b)
			x.f = New(store.New(), nil)
			ids := id.NewSeeded(1)
			var size int
			for n := int64(1); b.Loop(); n++ {
				data, err := command.Encode(executionsOf(ids, keeps, n*int64(time.Second)))
				require.NoError(b, err)
				size = len(data)
				x.index++
				_, err = x.f.Apply(x.index, data)
				require.NoError(b, err)
			}
			b.ReportMetric(float64(size)/1000, "bytes/execution")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/execution")
		})
	}
}

// executionsOf are the starts and ends of a thousand executions, in one entry.
func executionsOf(ids id.Source, keeps bool, now int64) command.Command {
	var records []command.ExecutionRecord
	for range 1000 {
		x := execution.Execution{
			ID: ids.New(), RunnerID: "python-" + ids.New(), AllocID: ids.New(), Task: "runner", Running: true,
			Spec: execution.Spec{Argv: []string{"/bin/sh", "-c", "python3 main.py"}, WorkDir: "/workspace", User: "user"},
		}
		add := func(kind string) {
			records = append(records, command.ExecutionRecord{Event: command.ExecutionEvent{Type: kind, Namespace: "default", Execution: x}})
		}
		add("ExecutionStarted")
		x.Running, x.Receipt = false, &execution.Receipt{
			ExecutionID: x.ID, Cause: execution.CauseExited, StartedAt: time.Unix(0, now).UTC(), Wall: 123456789, UserCPU: 98765432,
			SystemCPU: 12345678, PeakMemory: 12 << 20, StdoutBytes: 1234,
		}
		add("ExecutionEnded")
	}
	if keeps {
		return &command.RecordExecutions{Records: records, Time: now}
	}
	told := &command.TellExecutions{}
	for _, r := range records {
		told.Events = append(told.Events, r.Event)
	}
	return told
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
