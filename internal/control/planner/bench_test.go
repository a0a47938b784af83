package planner

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/fsm"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/id"
)

// storeLog applies to a real store, encoded, as raft would.
type storeLog struct {
	mu    sync.Mutex
	fsm   *fsm.FSM
	index uint64
	plans int
}

func (l *storeLog) Propose(_ context.Context, c command.Command) (uint64, any, error) {
	data, err := command.Encode(c)
	if err != nil {
		return 0, nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.index++
	if _, ok := c.(*command.ApplyPlans); ok {
		l.plans++
	}
	result, err := l.fsm.Apply(l.index, data)
	return l.index, result, err
}

// BenchmarkSmallPlans commits plans of one allocation, 64 submitted at once.
func BenchmarkSmallPlans(b *testing.B) {
	st := store.New()
	log := &storeLog{fsm: fsm.New(st, nil)}
	for n := range 100 {
		_, _, err := log.Propose(b.Context(), &command.RegisterNode{Node: node(fmt.Sprint(n), 1<<40)})
		require.NoError(b, err)
	}
	p := New(Config{}, Deps{
		Log: log, State: func() Snapshot { return st.Snapshot() }, Clock: clock.Wall{}, IDs: id.Random{},
		Logger: slog.New(slog.DiscardHandler), Token: func(string) (string, bool) { return "", true },
	})
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = p.Run(ctx) }() // ends with cancel
	var next atomic.Int64
	b.SetParallelism(32)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			i := next.Add(1)
			r, err := p.Submit(ctx, place(alloc(fmt.Sprint(i), fmt.Sprint(i%100), 1)), []*drover.Evaluation{{ID: fmt.Sprint(i)}})
			if err != nil || r.RefreshIndex != 0 {
				b.Error(err, r.RefreshIndex)
			}
		}
	})
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "plans/s")
	b.ReportMetric(float64(b.N)/float64(log.plans), "plans/entry")
	cancel()
	<-ended
}
