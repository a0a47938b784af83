package machine

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/exchange"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// control answers, or does not.
type control struct {
	away       atomic.Bool
	registered atomic.Pointer[drover.Node]
}

func (c *control) err() error {
	if c.away.Load() {
		return drover.Errorf(drover.Unavailable, "nobody is there")
	}
	return nil
}

func (c *control) Register(_ context.Context, n *drover.Node) (exchange.Registration, error) {
	if c.err() == nil {
		c.registered.Store(n)
	}
	return exchange.Registration{}, c.err()
}

func (c *control) Heartbeat(context.Context, string) (exchange.Registration, error) {
	return exchange.Registration{}, c.err()
}

func (c *control) Pull(ctx context.Context, _ string, seen exchange.Seen, _ time.Duration) (exchange.Assignment, error) {
	<-ctx.Done()
	return exchange.Assignment{Index: seen.Index}, ctx.Err()
}

func (c *control) Push(context.Context, string, []exchange.AllocUpdate) error { return c.err() }

// world is a guard in a bubble, with commands that do what the test says.
type world struct {
	*Guard
	control control
	work    atomic.Int64
	command atomic.Pointer[func([]string) ([]byte, error)]
	done    chan error
	at      time.Time
}

func newWorld(t *testing.T, cfg Config) *world {
	w := &world{done: make(chan error, 1), at: time.Now()}
	w.says(func([]string) ([]byte, error) { return nil, nil })
	w.Guard = New(cfg, Deps{
		Controller: &w.control, Clock: clock.Wall{}, Log: slog.New(slog.DiscardHandler), Work: func() int { return int(w.work.Load()) },
		Command: func(_ context.Context, argv []string) ([]byte, error) { return (*w.command.Load())(argv) },
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { w.done <- w.Run(ctx) }() // ends with the test
	t.Cleanup(func() { cancel(); synctest.Wait() })
	return w
}

func (w *world) says(f func([]string) ([]byte, error)) { w.command.Store(&f) }

func (w *world) ended() (time.Duration, error) {
	err := <-w.done
	return time.Since(w.at), err
}

func TestDeadManSwitch(t *testing.T) {
	t.Parallel()
	beat := func(w *world, times int) {
		for range times {
			time.Sleep(10 * time.Second)
			_, _ = w.Heartbeat(context.Background(), "n")
		}
	}
	t.Run("an idle machine goes", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, Config{Idle: 15 * time.Minute})
			beat(w, 60) // ten minutes
			w.control.away.Store(true)
			go beat(w, 80) // ends by itself, before the machine
			after, err := w.ended()
			require.ErrorIs(t, err, ErrDead)
			require.InDelta(t, 25, after.Minutes(), 0.2)
		})
	})
	t.Run("a server that answers keeps it", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, Config{Idle: time.Minute})
			beat(w, 360)
			require.Empty(t, w.done)
		})
	})
	t.Run("a machine with work stays unless it is told otherwise", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, Config{Idle: time.Minute})
			w.work.Store(1)
			time.Sleep(24 * time.Hour)
			require.Empty(t, w.done)
			w.work.Store(0)
			after, err := w.ended()
			require.ErrorIs(t, err, ErrDead)
			require.InDelta(t, 24, after.Hours(), 0.01)
		})
	})
	t.Run("work is stopped, then the machine powered off", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			off := make(chan []string, 1)
			w := newWorld(t, Config{Idle: time.Minute, Busy: time.Hour, PowerOff: []string{"poweroff", "-f"}})
			w.says(func(argv []string) ([]byte, error) { off <- argv; return nil, nil })
			w.work.Store(2)
			go func() { // the agent: ends with its assignment
				a, err := w.Pull(context.Background(), "n", exchange.Seen{Index: 7}, time.Minute)
				if err == nil && len(a.Allocs) == 0 && a.Index == 8 {
					w.work.Store(0)
				}
			}()
			require.Equal(t, []string{"poweroff", "-f"}, <-off)
			require.InDelta(t, 1, time.Since(w.at).Hours(), 0.01)
		})
	})
}

func TestBootProbe(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ready := time.Now().Add(31 * time.Second)
		w := newWorld(t, Config{BootProbe: "test -e /ready"})
		w.says(func(argv []string) ([]byte, error) {
			require.Equal(t, []string{"/bin/sh", "-c", "test -e /ready"}, argv)
			if time.Now().Before(ready) {
				return []byte("not yet"), errors.New("exit status 1")
			}
			return nil, nil
		})
		_, err := w.Register(t.Context(), &drover.Node{})
		require.NoError(t, err)
		require.InDelta(t, 32, time.Since(w.at).Seconds(), 1.1)
	})
}

func TestRunProbe(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{RunProbe: "healthy"})
		node := &drover.Node{
			ComputedClass: "c", Attributes: map[string]string{"driver.x": "1"},
			Drivers: map[string]*drover.DriverInfo{"x": {Detected: true, Healthy: true}},
		}
		beat := func() {
			if _, err := w.Heartbeat(t.Context(), "n"); drover.CodeOf(err) == drover.NotFound {
				_, err = w.Register(t.Context(), node)
				require.NoError(t, err)
			}
		}
		_, err := w.Register(t.Context(), node)
		require.NoError(t, err)
		w.says(func([]string) ([]byte, error) { return []byte("the disk is gone"), errors.New("exit status 1") })
		time.Sleep(25 * time.Second)
		beat()
		require.Same(t, node, w.control.registered.Load(), "once or twice is nothing")
		time.Sleep(10 * time.Second)
		beat()
		got := w.control.registered.Load()
		require.False(t, got.Drivers["x"].Healthy)
		require.Contains(t, got.Attributes[AttributeBroken], "the disk is gone")
		require.NotEqual(t, node.ComputedClass, got.ComputedClass)
		require.NotContains(t, got.Attributes, "driver.x")
		w.says(func([]string) ([]byte, error) { return nil, nil })
		time.Sleep(10 * time.Second)
		beat()
		require.Same(t, node, w.control.registered.Load())
	})
}

func TestCommands(t *testing.T) {
	t.Parallel()
	out, err := run(t.Context(), []string{shell, "-c", "echo here; exit 3"})
	require.ErrorContains(t, err, "3")
	require.Equal(t, "here\n", string(out))
	_, err = run(t.Context(), []string{"true"})
	require.NoError(t, err)
}
