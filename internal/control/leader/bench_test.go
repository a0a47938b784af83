package leader_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/assignment"
	"github.com/drover-project/drover/internal/control/fsm"
	"github.com/drover-project/drover/internal/control/intake"
	"github.com/drover-project/drover/internal/control/leader"
	"github.com/drover-project/drover/internal/control/raftlog"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/tables"
)

// BenchmarkRegisterToPlan measures from the call of RegisterJob until its allocation is in the state.
func BenchmarkRegisterToPlan(b *testing.B) {
	c := newCluster(b, leader.Config{HeartbeatTTL: time.Hour})
	_, err := c.nodes.Register(b.Context(), testNode("n1", 1<<40))
	require.NoError(b, err)
	var took []time.Duration
	for i := 0; b.Loop(); i++ {
		j := testJob(fmt.Sprintf("j%d", i), drover.JobTypeBatch, 1)
		changed := c.store.Watch(tables.JobAllocs, tables.JobKey("default", j.ID))
		start := time.Now()
		c.register(j)
		<-changed
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
}

// BenchmarkRegisterToPlanRaft does the same through hashicorp/raft, in memory and on disk (two entries, so two fsyncs
// and what bbolt adds).
func BenchmarkRegisterToPlanRaft(b *testing.B) {
	for _, where := range []string{"memory", "disk"} {
		b.Run(where, func(b *testing.B) {
			dir := ""
			if where == "disk" {
				dir = b.TempDir()
			}
			st := store.New()
			wall, discard := clock.Wall{}, slog.New(slog.DiscardHandler)
			l := leader.New(leader.Config{HeartbeatTTL: time.Hour}, leader.Deps{Store: st, Clock: wall, IDs: id.Random{}, Logger: discard})
			log, err := raftlog.Open(raftlog.Config{DataDir: dir}, raftlog.Deps{FSM: fsm.New(st, l), Log: discard, Clock: wall})
			require.NoError(b, err)
			require.NoError(b, log.WaitLeader(b.Context()))
			ctx, cancel := context.WithCancel(context.Background())
			ended := make(chan struct{})
			go func() { defer close(ended); _ = l.Run(ctx, log) }() // ends with cancel
			defer func() { cancel(); <-ended; _ = log.Close() }()
			in := intake.New(intake.Deps{Log: log, Store: st, Clock: wall, IDs: id.Random{}})
			nodes := assignment.New(assignment.Deps{Log: log, Store: st, Leader: l, Clock: wall, IDs: id.Random{}, Logger: discard})
			_, err = nodes.Register(ctx, testNode("n1", 1<<40))
			require.NoError(b, err)
			var took []time.Duration
			for i := 0; b.Loop(); i++ {
				j := testJob(fmt.Sprintf("j%d", i), drover.JobTypeBatch, 1)
				changed := st.Watch(tables.JobAllocs, tables.JobKey("default", j.ID))
				start := time.Now()
				_, err := in.RegisterJob(ctx, drover.RegisterRequest{Job: j})
				require.NoError(b, err)
				<-changed
				took = append(took, time.Since(start))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
		})
	}
}

// BenchmarkBatch runs one job of 1,000 allocations on a node that finishes them at once.
func BenchmarkBatch(b *testing.B) {
	c := newCluster(b, leader.Config{HeartbeatTTL: time.Hour})
	c.agent(testNode("n1", 1<<40), true)
	const count = 1000
	n := 0
	for i := 0; b.Loop(); i++ {
		id := fmt.Sprintf("j%d", i)
		c.register(testJob(id, drover.JobTypeBatch, count))
		c.until("dead", func(s *store.Snapshot) bool { return s.Job("default", id).Status == drover.JobStatusDead })
		n += count
		b.StopTimer()
		_, err := c.intake.DeregisterJob(context.Background(), drover.DeregisterRequest{Namespace: "default", ID: id, Purge: true})
		require.NoError(b, err)
		require.NoError(b, c.intake.CollectGarbage(context.Background()))
		b.StartTimer()
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "allocs/s")
}

// BenchmarkSmallJobs registers many jobs of one allocation at once: plans a second through broker, scheduler, planner.
func BenchmarkSmallJobs(b *testing.B) {
	for _, nodes := range []int{1, 100} {
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			c := newCluster(b, leader.Config{HeartbeatTTL: time.Hour})
			for i := range nodes {
				_, err := c.nodes.Register(b.Context(), testNode(fmt.Sprintf("n%d", i), 1<<40))
				require.NoError(b, err)
			}
			n := 0
			for i := 0; b.Loop(); i++ {
				const jobs = 1000
				for k := range jobs {
					c.register(testJob(fmt.Sprintf("j%d-%d", i, k), drover.JobTypeBatch, 1))
				}
				n += jobs
				c.until("all placed", func(s *store.Snapshot) bool {
					placed := 0
					for i := range nodes {
						placed += int(s.Used(fmt.Sprintf("n%d", i)).CPU) / 100 // what a testJob asks for
					}
					return placed == n
				})
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "jobs/s")
		})
	}
}
