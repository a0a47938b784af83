package agent

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/node/allocrunner/allocrunnertest"
	"github.com/drover-project/drover/internal/node/cgroup"
	"github.com/drover-project/drover/internal/node/driver"
)

// BenchmarkBatch runs 1,000 tasks that end at once, with the local state on disk: what the node adds to the drivers'
// own time.
func BenchmarkBatch(b *testing.B) {
	const n = 1000
	for b.Loop() {
		world := allocrunnertest.New(clock.Wall{})
		world.Instant = true
		c := newControl()
		a, err := New(Config{DataDir: b.TempDir(), GC: GCConfig{MaxAllocs: 10_000, DiskPercent: 101, InodePercent: 101}}, Deps{
			Controller: c, Drivers: []driver.Driver{world}, Clock: clock.Wall{}, IDs: id.Random{}, Log: slog.New(slog.DiscardHandler),
		})
		require.NoError(b, err)
		ctx, cancel := context.WithCancel(context.Background())
		ran := make(chan error, 1)
		go func() { ran <- a.Run(ctx) }() // ends with cancel
		j := &drover.Job{
			ID: "j", Type: "batch",
			TaskGroups: []*drover.TaskGroup{
				{Name: "g", Tasks: []*drover.Task{{Name: "t", Driver: "fake", Config: map[string]any{"command": "/bin/true"}}}},
			},
		}
		j.Canonicalize()
		var all []*drover.Allocation
		for range n {
			all = append(all, &drover.Allocation{
				ID: id.Random{}.New(), Name: "j.g[0]", JobID: "j", Job: j, TaskGroup: "g", CreateTime: time.Now().UnixNano(),
				DesiredStatus: "run", ClientStatus: "pending", AllocModifyIndex: 1,
			})
		}
		start := time.Now()
		c.assign(all...)
		for done := false; !done; {
			c.mu.Lock()
			changed := c.changed
			done = true
			for _, x := range c.allocs {
				done = done && x.ClientStatus == "complete"
			}
			c.mu.Unlock()
			if !done {
				<-changed
			}
		}
		b.ReportMetric(n/time.Since(start).Seconds(), "tasks/s")
		b.ReportMetric(float64(c.pushed()), "pushes")
		cancel()
		require.NoError(b, <-ran)
	}
}

// BenchmarkTrue runs 1,000 times /bin/true with raw_exec.
func BenchmarkTrue(b *testing.B) {
	const n = 1000
	for b.Loop() {
		r := &real{t: b, data: b.TempDir(), control: newControl()}
		r.groups, _ = cgroup.New(cgroup.Config{Parent: "drover-bench-agent"})
		r.start()
		var all []*drover.Allocation
		for range n {
			all = append(all, rawAlloc("batch", false, map[string]any{"command": "/bin/true"}))
		}
		start := time.Now()
		r.control.assign(all...)
		for _, a := range all {
			r.await(a.ID, "complete")
		}
		b.ReportMetric(n/time.Since(start).Seconds(), "tasks/s")
		r.end()
	}
}

// BenchmarkStart measures assignment to running, as control hears it.
func BenchmarkStart(b *testing.B) {
	r := newReal(b)
	for b.Loop() {
		a := rawAlloc("batch", false, map[string]any{"command": "/bin/sleep", "args": []any{"0.01"}})
		r.control.assign(a)
		r.await(a.ID, "running")
		b.StopTimer()
		r.await(a.ID, "complete")
		b.StartTimer()
	}
}
