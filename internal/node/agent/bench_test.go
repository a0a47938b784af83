package agent

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drover"
	"drover/internal/clock"
	"drover/internal/id"
	"drover/internal/node/allocrunner/allocrunnertest"
	"drover/internal/node/driver"
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
		j := &drover.Job{ID: "j", Type: "batch", TaskGroups: []*drover.TaskGroup{{Name: "g", Tasks: []*drover.Task{{Name: "t", Driver: "fake", Config: map[string]any{"command": "/bin/true"}}}}}}
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
