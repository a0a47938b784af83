package executor_test

import (
	"context"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/exec/exectest"
	"github.com/drover-project/drover/internal/exec/executor"
	"github.com/drover-project/drover/internal/exec/runner"
	"github.com/drover-project/drover/internal/id"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type bundle struct {
	*executor.Executor
	control *exectest.Control
	runners *runner.Service
	runner  execution.Runner
	stop    func()
	hooks   *hooks
	told    *told
	shared  *shared // the state of several servers; nil: the server is alone
}

// again is the next process's service over the same runners.
func (b *bundle) again(t *testing.T, cfg executor.Config) *bundle {
	t.Helper()
	next := &bundle{control: b.control, runners: b.runners, runner: b.runner, hooks: &hooks{}, told: &told{}}
	next.start(t, cfg)
	return next
}

func (b *bundle) start(t *testing.T, cfg executor.Config) {
	t.Helper()
	deps := executor.Deps{Notifier: b.hooks, Teller: b.told}
	if b.shared != nil {
		deps.Teller, deps.Records = b.shared, b.shared
	}
	b.startWith(t, cfg, deps)
}

func (b *bundle) startWith(t *testing.T, cfg executor.Config, deps executor.Deps) {
	t.Helper()
	deps.Runners, deps.Keeping, deps.Clock, deps.IDs, deps.Log = b.runners, b.runners, clock.Wall{}, id.Random{}, slog.New(slog.DiscardHandler)
	s, err := executor.New(cfg, deps)
	require.NoError(t, err)
	b.Executor = s
	ctx, cancel := context.WithCancel(t.Context())
	var run sync.WaitGroup
	run.Go(func() { _ = s.Run(ctx) }) // ends with ctx
	b.stop = sync.OnceFunc(func() { cancel(); run.Wait() })
}

// told stands for the event stream.
type told struct {
	mu     sync.Mutex
	events []executor.Event
	tries  int
	failed int
}

func (l *told) TellExecutions(_ context.Context, events []executor.Event) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed > 0 {
		l.failed--
		return drover.Errorf(drover.Unavailable, "no leader")
	}
	l.events = append(l.events, events...)
	l.tries++
	return nil
}

func (l *told) fail(times int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failed = times
}

func (l *told) all() []executor.Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.events
}

func (l *told) calls() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tries
}

// hooks stands for the web: an address fails as often as its path says.
type hooks struct {
	mu    sync.Mutex
	calls []string
	ids   []string // of deliveries
	last  []byte
	hold  chan struct{} // calls of paths with "hang" wait for it
}

func (h *hooks) Check(string) error { return nil }

func (h *hooks) Notify(ctx context.Context, url, delivery string, body []byte) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls, h.ids, h.last = append(h.calls, url), append(h.ids, delivery), body
	if strings.HasSuffix(url, "/hang") {
		h.mu.Unlock()
		defer h.mu.Lock() // before it is unlocked
		select {
		case <-h.hold:
		case <-ctx.Done():
		}
		return ctx.Err()
	}
	switch {
	case strings.HasSuffix(url, "/forbidden"):
		return drover.Errorf(drover.Forbidden, "no")
	case strings.HasSuffix(url, "/third") && len(h.calls) < 3, strings.HasSuffix(url, "/down"):
		return drover.Errorf(drover.Unavailable, "busy")
	}
	return nil
}

func (h *hooks) called() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.calls)
}

// deliveries lists the ids that came, each once.
func (h *hooks) deliveries() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	ids := slices.Sorted(slices.Values(h.ids))
	return slices.Compact(ids)
}

func (h *hooks) count() int { return len(h.called()) }

// bubble runs the test in synctest's time, with one claimed runner.
func bubble(t *testing.T, cfg executor.Config, test func(t *testing.T, b *bundle)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := exectest.NewControl()
		runners, stopRunners := exectest.Start(t, c, runner.Config{})
		_, err := runners.PutEnvironment(t.Context(), execution.Environment{
			ID: "e", Image: "host", PoolSize: 2, User: "user", Env: map[string]string{"A": "environment", "B": "environment"},
		})
		require.NoError(t, err)
		synctest.Wait()
		r, err := runners.Claim(
			t.Context(), execution.ClaimRequest{Environment: "e", Env: map[string]string{"B": "claim", "C": "claim"}, IdleTimeout: time.Minute},
		)
		require.NoError(t, err)
		b := &bundle{control: c, runners: runners, runner: r, hooks: &hooks{}, told: &told{}}
		b.start(t, cfg)
		test(t, b)
		b.stop()
		stopRunners()
		synctest.Wait()
	})
}

func sh(command string) execution.Spec {
	return execution.Spec{Argv: []string{"/bin/sh", "-c", command}}
}

// collect reads to the end.
func collect(t *testing.T, s execution.Session) (stdout, stderr string, r execution.Receipt) {
	t.Helper()
	var out [3]strings.Builder
	for {
		f, err := s.Next(t.Context())
		require.NoError(t, err)
		if f.Receipt != nil {
			_, err = s.Next(t.Context())
			require.ErrorIs(t, err, io.EOF)
			return out[execution.Stdout].String(), out[execution.Stderr].String(), *f.Receipt
		}
		out[f.Stream].Write(f.Data)
	}
}
