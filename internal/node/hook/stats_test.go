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

	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/usage"
)

// meter counts its samples, and takes a while for each.
type meter struct {
	mu   sync.Mutex
	n    int64
	err  error
	took time.Duration
}

func (m *meter) Usage(ctx context.Context) (*usage.TaskResourceUsage, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.took > 0 && !clock.Sleep(ctx, clock.Wall{}, m.took) {
		return nil, ctx.Err()
	}
	m.n++
	return &usage.TaskResourceUsage{Timestamp: m.n}, m.err
}

func (m *meter) fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.err = err
}

func (m *meter) asked() int64 {
	synctest.Wait()
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.n
}

// collecting runs the hook on a meter for a test, which may look at what came and how it ended.
func collecting(t *testing.T, m *meter, update func(*usage.TaskResourceUsage), test func(stop func(), ended <-chan struct{})) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		h := &Stats{Meter: m, Interval: time.Second, Clock: clock.Wall{}, Log: slog.New(slog.DiscardHandler), Update: update}
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() { // ends with cancel
			h.Run(ctx)
			close(ended)
		}()
		test(cancel, ended)
		cancel()
		<-ended
	})
}

func TestTheFirstSampleComesAtOnceThenOneAnInterval(t *testing.T) {
	t.Parallel()
	m, got := &meter{}, []int64(nil)
	collecting(t, m, func(u *usage.TaskResourceUsage) { got = append(got, u.Timestamp) }, func(func(), <-chan struct{}) {
		require.Equal(t, int64(1), m.asked())
		time.Sleep(10*time.Second + time.Millisecond)
		require.Equal(t, int64(11), m.asked())
		require.Len(t, got, 11)
	})
}

// TestASlowReaderMissesSamples: they do not pile up for it, and the next is a new one.
func TestASlowReaderMissesSamples(t *testing.T) {
	t.Parallel()
	m, slow := &meter{}, true
	collecting(t, m, func(*usage.TaskResourceUsage) {
		if slow {
			slow = false
			time.Sleep(10 * time.Second)
		}
	}, func(func(), <-chan struct{}) {
		time.Sleep(10*time.Second + time.Millisecond)
		require.Equal(t, int64(1), m.asked())
		time.Sleep(time.Second)
		require.Equal(t, int64(2), m.asked())
	})
}

// TestErrorsBackOff by 5 s doubling to 2 min, the first one too, and pass; then they begin anew.
func TestErrorsBackOff(t *testing.T) {
	t.Parallel()
	m, got := &meter{err: errors.New("the daemon is away")}, 0
	collecting(t, m, func(*usage.TaskResourceUsage) { got++ }, func(func(), <-chan struct{}) {
		wait := func(d time.Duration) {
			before := m.asked()
			time.Sleep(d - time.Millisecond)
			require.Equal(t, before, m.asked())
			time.Sleep(time.Millisecond)
			require.Equal(t, before+1, m.asked())
		}
		for _, seconds := range []time.Duration{5, 10, 20, 40, 80, 120, 120} {
			wait(seconds * time.Second)
		}
		m.fail(nil)
		wait(2 * time.Minute)
		require.Equal(t, 1, got)
		wait(time.Second)
		require.Equal(t, 2, got)
		m.fail(errors.New("again"))
		wait(time.Second)
		wait(5 * time.Second)
		require.Equal(t, 2, got)
	})
}

func TestATaskThatIsGoneEndsIt(t *testing.T) {
	t.Parallel()
	for _, final := range []error{driver.ErrGone, driver.ErrNotSupported} {
		m := &meter{}
		collecting(t, m, func(*usage.TaskResourceUsage) {}, func(_ func(), ended <-chan struct{}) {
			time.Sleep(time.Second / 2)
			m.fail(final)
			time.Sleep(time.Second)
			<-ended
			require.Equal(t, int64(2), m.asked())
		})
	}
}

func TestAStopInterruptsAWait(t *testing.T) {
	t.Parallel()
	for name, m := range map[string]*meter{"backoff": {err: errors.New("busy")}, "interval": {}, "reading": {took: time.Hour}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			collecting(t, m, func(*usage.TaskResourceUsage) {}, func(stop func(), ended <-chan struct{}) {
				synctest.Wait()
				start := time.Now()
				stop()
				<-ended
				require.Zero(t, time.Since(start))
			})
		})
	}
}

func TestTasksAreSampledTogether(t *testing.T) {
	t.Parallel()
	start := time.Unix(100, 0)
	require.Equal(t, time.Second, together(start, time.Second))
	require.Equal(t, 1050*time.Millisecond, together(start.Add(50*time.Millisecond), time.Second))
	require.Equal(t, time.Second, together(start.Add(1100*time.Millisecond), time.Second), "one an interval from then on")
}
