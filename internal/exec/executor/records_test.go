package executor_test

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/exec/executor"
	"github.com/drover-project/drover/internal/id"
)

// shared is the state that several servers have together, as the state machine keeps it: the first end counts.
type shared struct {
	told
	kept map[string]*execution.Record
}

func newShared() *shared { return &shared{kept: map[string]*execution.Record{}} }

func (s *shared) TellExecutions(ctx context.Context, events []executor.Event) error {
	if err := s.told.TellExecutions(ctx, events); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range events {
		old := s.kept[e.Execution.ID]
		switch {
		case e.Type == executor.EventTold && old != nil:
			next := *old
			next.Webhook = ""
			s.kept[e.Execution.ID] = &next
		case e.Type == executor.EventTold, old != nil && !old.Execution.Running, e.Execution.Running && e.Webhook == "":
		default:
			s.kept[e.Execution.ID] = &execution.Record{Execution: e.Execution, Webhook: e.Webhook, Request: e.Request, At: time.Now().UnixNano()}
		}
	}
	return nil
}

func (s *shared) Ready(context.Context) error { return nil }

func (s *shared) Execution(id string) *execution.Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kept[id]
}

func (s *shared) UntoldExecutions() iter.Seq[*execution.Record] {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := maps.Clone(s.kept)
	return func(yield func(*execution.Record) bool) {
		for _, r := range all {
			if r.Webhook != "" && !yield(r) {
				return
			}
		}
	}
}

// share starts b's service anew, as one of several servers.
func (b *bundle) share(t *testing.T, cfg executor.Config) {
	t.Helper()
	b.stop()
	b.shared = newShared()
	b.start(t, cfg)
}

// another starts a service over the same runners and the same state: the server that leads next.
func (b *bundle) another(t *testing.T, cfg executor.Config) *bundle {
	t.Helper()
	next := &bundle{control: b.control, runners: b.runners, runner: b.runner, hooks: &hooks{}, shared: b.shared}
	next.start(t, cfg)
	return next
}

func TestAnotherServerAnswersAndTellsWhatEnded(t *testing.T) {
	t.Parallel()
	bubble(t, executor.Config{}, func(t *testing.T, b *bundle) {
		b.share(t, executor.Config{})
		quiet, err := b.CreateRequest(t.Context(), b.runner.ID, execution.Request{Command: "exit 3"})
		require.NoError(t, err)
		hooked, err := b.CreateRequest(t.Context(), b.runner.ID, withHook("exit 4", "https://example.org/down"))
		require.NoError(t, err)
		told, err := b.CreateRequest(t.Context(), b.runner.ID, withHook("exit 5", "https://example.org/up"))
		require.NoError(t, err)
		require.True(t, b.shared.Execution(hooked.ID).Execution.Running, "it is recorded before it is answered")
		require.Nil(t, b.shared.Execution(quiet.ID))
		time.Sleep(3 * time.Second) // synctest's time
		b.stop()                    // while a webhook is down

		next := b.another(t, executor.Config{})
		for id, code := range map[string]int{quiet.ID: 3, hooked.ID: 4, told.ID: 5} {
			x, err := next.Wait(t.Context(), id)
			require.NoError(t, err)
			require.Equal(t, code, x.Receipt.ExitCode)
			require.False(t, x.Running)
		}
		session, err := next.Attach(t.Context(), quiet.ID, execution.Offsets{})
		require.NoError(t, err)
		_, _, receipt := collect(t, session)
		require.Equal(t, 3, receipt.ExitCode)
		require.NoError(t, session.Close())
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Equal(t, 6, next.hooks.count(), "the webhook that was not told, and no other")
		require.Equal(t, []string{hooked.ID}, next.hooks.deliveries())
		require.Contains(t, b.hooks.deliveries(), hooked.ID, "with the id that the first server gave it")
		require.Empty(t, b.shared.Execution(hooked.ID).Webhook, "it is told or given up once")
		_, err = next.Info(t.Context(), quiet.ID)
		require.Equal(t, drover.NotFound, drover.CodeOf(err), "its time is over")
		next.stop()
	})
}

// What ends right before a server ceases to lead is not in the log yet.
func TestWhatEndedLastIsRecorded(t *testing.T) {
	t.Parallel()
	bubble(t, executor.Config{}, func(t *testing.T, b *bundle) {
		b.share(t, executor.Config{})
		x, err := b.CreateRequest(t.Context(), b.runner.ID, execution.Request{Command: "exit 3"})
		require.NoError(t, err)
		_, err = b.Wait(t.Context(), x.ID)
		require.NoError(t, err)
		synctest.Wait()
		require.Empty(t, b.shared.all())
		b.stop()
		next := b.another(t, executor.Config{})
		got, err := next.Info(t.Context(), x.ID)
		require.NoError(t, err)
		require.Equal(t, 3, got.Receipt.ExitCode)
		next.stop()
	})
}

func TestAWebhookThatCannotBeRecordedIsRefused(t *testing.T) {
	t.Parallel()
	bubble(t, executor.Config{}, func(t *testing.T, b *bundle) {
		b.share(t, executor.Config{})
		b.shared.fail(1)
		_, err := b.CreateRequest(t.Context(), b.runner.ID, withHook("sleep 1h", "https://example.org/up"))
		require.Equal(t, drover.Unavailable, drover.CodeOf(err))
		time.Sleep(5 * time.Second)
		synctest.Wait()
		require.Zero(t, b.hooks.count())
		list, err := b.List(t.Context(), b.runner.ID)
		require.NoError(t, err)
		require.Empty(t, list)
		all := b.shared.all()
		require.Len(t, all, 1, "should the log have its start, it has its end, too")
		require.Equal(t, executor.EventEnded, all[0].Type)
	})
}

// A server leads again. Its ledger says that an execution runs, and another server saw it end meanwhile.
func TestWhatEndedElsewhereIsNotLost(t *testing.T) {
	t.Parallel()
	cfg := executor.Config{LedgerPath: filepath.Join(t.TempDir(), "ledger")}
	bubble(t, executor.Config{}, func(t *testing.T, b *bundle) {
		b.share(t, cfg)
		spec := sh("sleep 10m; exit 3")
		spec.Detach = -1
		x, err := b.CreateRequest(t.Context(), b.runner.ID, execution.Request{Spec: spec, Webhook: "https://example.org/up"})
		require.NoError(t, err)
		synctest.Wait()
		b.stop()

		elsewhere := b.another(t, executor.Config{})
		time.Sleep(11 * time.Minute)
		synctest.Wait()
		require.Equal(t, 1, elsewhere.hooks.count(), "the state says whom to tell")
		elsewhere.stop()
		_ = b.runners.Release(t.Context(), b.runner.ID) // it may be idle for too long

		again := b.another(t, cfg)
		time.Sleep(time.Minute)
		synctest.Wait()
		got, err := again.Info(t.Context(), x.ID)
		require.NoError(t, err)
		require.Equal(t, 3, got.Receipt.ExitCode)
		require.Zero(t, again.hooks.count())
		again.stop()
		for _, e := range b.shared.all() {
			if e.Type == executor.EventEnded {
				require.Equal(t, 3, e.Execution.Receipt.ExitCode)
			}
		}
	})
}

// The key gives the execution its id, by which a repetition is told from a new request, over a restart too.
func TestAKeyStartsOneExecutionOverARestart(t *testing.T) {
	t.Parallel()
	cfg := executor.Config{LedgerPath: filepath.Join(t.TempDir(), "ledger")}
	bubble(t, cfg, func(t *testing.T, b *bundle) {
		once := func(key, request string) execution.Request {
			return execution.Request{Command: "exit 3", Once: execution.Once{ID: id.Named(key), Request: request}}
		}
		x, err := b.CreateRequest(t.Context(), b.runner.ID, once("one", "r"))
		require.NoError(t, err)
		_, err = b.Wait(t.Context(), x.ID)
		require.NoError(t, err)
		b.stop()
		next := b.again(t, cfg)
		defer next.stop()
		again, err := next.CreateRequest(t.Context(), b.runner.ID, once("one", "r"))
		require.NoError(t, err)
		require.Equal(t, x.ID, again.ID)
		require.Equal(t, 3, again.Receipt.ExitCode)
		_, err = next.CreateRequest(t.Context(), b.runner.ID, once("one", "other"))
		require.Equal(t, drover.Conflict, drover.CodeOf(err))
		_, err = next.RunOnce(t.Context(), execution.RunRequest{Environment: "e", Request: once("one", "r")})
		require.Equal(t, drover.Conflict, drover.CodeOf(err), "its output is not kept")
		other, err := next.CreateRequest(t.Context(), b.runner.ID, once("two", "r"))
		require.NoError(t, err)
		require.NotEqual(t, x.ID, other.ID)
	})
}

// mortal is a server that can be killed: from then on nothing that it does is seen by anybody.
type mortal struct {
	*shared
	hooks *hooks
	dead  atomic.Bool
}

func (m *mortal) TellExecutions(ctx context.Context, events []executor.Event) error {
	if m.dead.Load() {
		return drover.Errorf(drover.Unavailable, "it was killed")
	}
	return m.shared.TellExecutions(ctx, events)
}

func (m *mortal) Check(string) error { return nil }

func (m *mortal) Notify(ctx context.Context, url, delivery string, body []byte) error {
	if m.dead.Load() {
		return drover.Errorf(drover.Unavailable, "it was killed")
	}
	return m.hooks.Notify(ctx, url, delivery, body)
}

// Servers lead one after another, each until it is killed, at random moments. Runners keep receipts until they are
// recorded, so every execution has one end, which is its own, and every webhook hears of it.
func TestKilledLeadersLoseNoEnd(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		type step struct {
			do   int
			hook string
			code int
			runs time.Duration
			wait time.Duration
		}
		steps := make([]step, rapid.IntRange(1, 15).Draw(rt, "steps"))
		for i := range steps {
			steps[i] = step{
				rapid.IntRange(0, 3).Draw(rt, "do"),
				rapid.SampledFrom([]string{"", "https://example.org/up", "https://example.org/third"}).Draw(rt, "hook"),
				rapid.IntRange(1, 9).Draw(rt, "code"), time.Duration(rapid.IntRange(0, 2_000).Draw(rt, "runs")) * time.Millisecond,
				time.Duration(rapid.IntRange(0, 700).Draw(rt, "wait")) * time.Millisecond,
			}
		}
		bubble(t, executor.Config{}, func(t *testing.T, b *bundle) {
			b.stop()
			_, err := b.runners.Extend(t.Context(), b.runner.ID, 0)
			require.NoError(t, err)
			state, web := newShared(), &hooks{}
			var leader *mortal
			lead := func() {
				leader = &mortal{shared: state, hooks: web}
				b.startWith(t, executor.Config{}, executor.Deps{Notifier: leader, Teller: leader, Records: leader})
			}
			lead()
			codes, hooked := map[string]int{}, map[string]bool{}
			for _, s := range steps {
				if s.do == 0 {
					leader.dead.Store(true)
					b.control.Node.CutLink(true)
					b.stop()
					b.control.Node.CutLink(false)
					lead()
				} else {
					spec := sh(fmt.Sprintf("sleep %v; exit %d", s.runs, s.code))
					spec.Detach = -1
					x, err := b.CreateRequest(t.Context(), b.runner.ID, execution.Request{Spec: spec, Webhook: s.hook})
					require.NoError(t, err)
					codes[x.ID], hooked[x.ID] = s.code, s.hook != ""
				}
				time.Sleep(s.wait)
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			ends := map[string]int{}
			for _, e := range state.all() {
				if e.Type == executor.EventEnded {
					require.Equal(t, codes[e.Execution.ID], e.Execution.Receipt.ExitCode, "%+v after %+v", *e.Execution.Receipt, steps)
					ends[e.Execution.ID]++
				}
			}
			told := web.deliveries()
			for id, code := range codes {
				x, err := b.Info(t.Context(), id)
				require.NoError(t, err)
				require.Equal(t, code, x.Receipt.ExitCode)
				require.NotZero(t, ends[id])
				require.Equal(t, hooked[id], slices.Contains(told, id))
			}
		})
	})
}
