package evalbroker

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestShellDeliversToWorkers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := NewShell(Config{}, clock.Wall{}, func(string) (drover.Capacity, bool) { return drover.Capacity{CPU: 9}, true }, nil)
		s.Enable(0)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { _ = s.Run(ctx) }) // ends with cancel
		var done atomic.Int64
		for range 4 {
			wg.Go(func() { // ends with cancel
				for {
					e, token, err := s.Dequeue(ctx, drover.JobTypeService)
					if err != nil {
						return
					}
					done.Add(1)
					_ = s.Ack(e.ID, token)
				}
			})
		}
		synctest.Wait()
		for i := range 100 {
			s.Enqueue(eval(fmt.Sprint(i), fmt.Sprint(i), 50, uint64(i)))
		}
		synctest.Wait()
		require.EqualValues(t, 100, done.Load())

		later := eval("later", "later", 50, 1)
		later.WaitUntil = time.Now().Add(time.Hour)
		s.Enqueue(later)
		synctest.Wait()
		require.EqualValues(t, 100, done.Load())
		clock.Sleep(ctx, clock.Wall{}, time.Hour) // of the bubble
		synctest.Wait()
		require.EqualValues(t, 101, done.Load())

		s.Block(blocked("b", "b", 5), drover.Capacity{CPU: 1})
		s.Freed("n", "good", 6)
		synctest.Wait()
		require.EqualValues(t, 102, done.Load())

		s.Disable()
		s.Enqueue(eval("x", "x", 50, 1))
		synctest.Wait()
		require.EqualValues(t, 102, done.Load())
		cancel()
		wg.Wait()
	})
}

func TestWakeUpIsPassedOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := NewShell(Config{}, clock.Wall{}, nil, nil)
		s.Enable(0)
		gone, leave := context.WithCancel(t.Context())
		got := make(chan string, 2)
		for _, ctx := range []context.Context{gone, t.Context()} {
			go func() { // ends with its context, or with what it gets
				if e, _, err := s.Dequeue(ctx, drover.JobTypeService); err == nil {
					got <- e.ID
				}
			}()
			synctest.Wait()
		}
		leave()
		s.Enqueue(eval("1", "1", 50, 1))
		require.Equal(t, "1", <-got)
	})
}
