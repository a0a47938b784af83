package hook

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"drover"
	"drover/internal/clock"
	"drover/internal/node/driver"
)

// scripted answers each Stream with the next step.
type scripted struct {
	mu    sync.Mutex
	steps []func() (<-chan *drover.TaskResourceUsage, error)
	at    []time.Duration
	began time.Time
}

func (s *scripted) Stream(context.Context, time.Duration) (<-chan *drover.TaskResourceUsage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at = append(s.at, time.Since(s.began))
	step := s.steps[min(len(s.at), len(s.steps))-1]
	return step()
}

func closed() (<-chan *drover.TaskResourceUsage, error) {
	c := make(chan *drover.TaskResourceUsage, 1)
	c <- &drover.TaskResourceUsage{}
	close(c)
	return c, nil
}

func silent() (<-chan *drover.TaskResourceUsage, error) {
	return make(chan *drover.TaskResourceUsage), nil
}

func broken() (<-chan *drover.TaskResourceUsage, error) { return nil, errors.New("busy") }

// TestStatsRun tries each rule of the hook: when the source is asked, and when the hook ends by itself.
func TestStatsRun(t *testing.T) {
	t.Parallel()
	s := time.Second
	for name, test := range map[string]struct {
		steps []func() (<-chan *drover.TaskResourceUsage, error)
		asked []time.Duration
		ends  bool // by itself, within a minute
		got   int
	}{
		"a closed channel is opened again after the interval": {steps: []func() (<-chan *drover.TaskResourceUsage, error){closed, closed, silent}, asked: []time.Duration{0, 3 * s, 6 * s}, got: 2},
		"errors back off": {
			steps: []func() (<-chan *drover.TaskResourceUsage, error){broken, broken, broken, broken, broken, silent},
			asked: []time.Duration{0, s, 3 * s, 7 * s, 12 * s, 17 * s},
		},
		"not supported ends it": {steps: []func() (<-chan *drover.TaskResourceUsage, error){func() (<-chan *drover.TaskResourceUsage, error) { return nil, driver.ErrNotSupported }}, asked: []time.Duration{0}, ends: true},
		"gone ends it":          {steps: []func() (<-chan *drover.TaskResourceUsage, error){closed, func() (<-chan *drover.TaskResourceUsage, error) { return nil, driver.ErrGone }}, asked: []time.Duration{0, 3 * s}, ends: true, got: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				source := &scripted{steps: test.steps, began: time.Now()}
				got := 0
				h := &Stats{Source: source, Interval: 3 * s, Clock: clock.Wall{}, Log: slog.New(slog.DiscardHandler), Update: func(*drover.TaskResourceUsage) { got++ }}
				ctx, cancel := context.WithCancel(context.Background())
				ended := make(chan struct{})
				go func() { // ends with cancel
					h.Run(ctx)
					close(ended)
				}()
				time.Sleep(time.Minute)
				synctest.Wait()
				select {
				case <-ended:
					require.True(t, test.ends)
				default:
					require.False(t, test.ends)
				}
				cancel()
				<-ended
				require.Equal(t, test.asked, source.at)
				require.Equal(t, test.got, got)
			})
		})
	}
}

func TestStatsStopInterruptsAWait(t *testing.T) {
	t.Parallel()
	for name, step := range map[string]func() (<-chan *drover.TaskResourceUsage, error){"backoff": broken, "interval": closed, "reading": silent} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := &Stats{Source: &scripted{steps: []func() (<-chan *drover.TaskResourceUsage, error){step}, began: time.Now()}, Interval: time.Hour, Clock: clock.Wall{}, Log: slog.New(slog.DiscardHandler), Update: func(*drover.TaskResourceUsage) {}}
				ctx, cancel := context.WithCancel(context.Background())
				ended := make(chan struct{})
				go func() { // ends with cancel
					h.Run(ctx)
					close(ended)
				}()
				synctest.Wait()
				start := time.Now()
				cancel()
				<-ended
				require.Zero(t, time.Since(start))
			})
		})
	}
}

// meter counts its samples.
type meter struct {
	mu  sync.Mutex
	n   int64
	err error
}

func (m *meter) Usage(context.Context) (*drover.TaskResourceUsage, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.n++
	return &drover.TaskResourceUsage{Timestamp: m.n}, m.err
}

func TestMeterSourceDropsForASlowReader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &meter{}
		ctx, cancel := context.WithCancel(context.Background())
		samples, err := MeterSource{m, clock.Wall{}}.Stream(ctx, time.Second)
		require.NoError(t, err)
		time.Sleep(10*time.Second + time.Millisecond)
		require.Equal(t, int64(11), (<-samples).Timestamp) // the newest, not the first
		m.mu.Lock()
		m.err = driver.ErrGone
		m.mu.Unlock()
		time.Sleep(time.Second)
		_, open := <-samples
		require.False(t, open)
		cancel()
		_, err = MeterSource{m, clock.Wall{}}.Stream(ctx, time.Second)
		require.ErrorIs(t, err, driver.ErrGone)
	})
}

func TestTasksAreSampledTogether(t *testing.T) {
	t.Parallel()
	start := time.Unix(100, 0)
	require.Equal(t, time.Second, together(start, time.Second))
	require.Equal(t, 1050*time.Millisecond, together(start.Add(50*time.Millisecond), time.Second))
	require.Equal(t, time.Second, together(start.Add(1100*time.Millisecond), time.Second), "one an interval from then on")
}

// TestMeterSourceBacksOff from errors, the first one too, by 5 s doubling to 2 min, and recovers.
func TestMeterSourceBacksOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &meter{err: errors.New("the daemon is away")}
		ctx, cancel := context.WithCancel(context.Background())
		samples, err := MeterSource{m, clock.Wall{}}.Stream(ctx, time.Second)
		require.NoError(t, err)
		asked := func() int64 {
			synctest.Wait()
			m.mu.Lock()
			defer m.mu.Unlock()
			return m.n
		}
		for i, wait := range []time.Duration{5, 10, 20, 40, 80, 120, 120} {
			time.Sleep(wait*time.Second - time.Millisecond)
			require.Equal(t, int64(i+1), asked())
			time.Sleep(time.Millisecond)
			require.Equal(t, int64(i+2), asked())
		}
		m.mu.Lock()
		m.err = nil
		m.mu.Unlock()
		time.Sleep(2 * time.Minute)
		require.Equal(t, int64(9), (<-samples).Timestamp)
		time.Sleep(time.Second)
		require.Equal(t, int64(10), (<-samples).Timestamp, "one an interval again")
		cancel()
		_, open := <-samples
		require.False(t, open)
	})
}
