package lookups

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
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

// control answers each question with its own version, and waits while all are seen.
type control struct {
	mu       sync.Mutex
	versions map[string]int // by name
	gone     map[string]bool
	changed  chan struct{}
	calls    int
	largest  int
	err      error
}

func newControl() *control {
	return &control{versions: map[string]int{}, gone: map[string]bool{}, changed: make(chan struct{})}
}

func (c *control) set(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
	close(c.changed)
	c.changed = make(chan struct{})
}

func (c *control) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls
}

func (c *control) Look(ctx context.Context, _ string, asked []exchange.Lookup, maxWait time.Duration) (found []exchange.Found, err error) {
	ctx, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls++
	c.largest = max(c.largest, len(asked))
	for {
		if c.err != nil {
			return nil, c.err
		}
		for i, a := range asked {
			f := exchange.Found{At: i, Version: fmt.Sprint(c.versions[a.Question.Name]), Data: []byte(a.AllocID)}
			if c.gone[a.AllocID] {
				f = exchange.Found{At: i, Version: "gone", Gone: true}
			}
			if f.Version != a.Seen {
				found = append(found, f)
			}
		}
		if len(found) > 0 {
			return found, nil
		}
		changed := c.changed
		c.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		c.mu.Lock()
		if ctx.Err() != nil {
			return nil, nil
		}
	}
}

func alloc(id, job string) *drover.Allocation {
	return &drover.Allocation{ID: id, Namespace: "default", JobID: job, TaskGroup: "g"}
}

func about(names ...string) (out []exchange.Question) {
	for _, n := range names {
		out = append(out, exchange.Question{Kind: exchange.AskVariable, Namespace: "default", Name: n})
	}
	return out
}

func in(t *testing.T, test func(t *testing.T, c *control, w *Watcher)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := newControl()
		test(t, c, New(c, "n", Retry{}, clock.Wall{}, slog.New(slog.DiscardHandler)))
	})
}

// await lets time pass until all has settled.
func await(d time.Duration) {
	time.Sleep(d) // of the bubble
	synctest.Wait()
}

// TestThousandsCostNothing: what a thousand tasks ask goes in few calls that wait, and the tasks of one group ask once.
func TestThousandsCostNothing(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T, c *control, w *Watcher) {
		var all []*Follower
		for i := range 1000 {
			f := w.Follow(t.Context(), alloc(fmt.Sprint("a", i), fmt.Sprint("j", i)), "t")
			f.Want(about(fmt.Sprint("nomad/jobs/", i)))
			all = append(all, f)
			twin := w.Follow(t.Context(), alloc(fmt.Sprint("b", i), fmt.Sprint("j", i)), "t")
			twin.Want(about(fmt.Sprint("nomad/jobs/", i)))
			all = append(all, twin)
		}
		await(time.Second)
		for _, f := range all {
			require.Len(t, f.Known(), 1)
		}
		require.Len(t, w.lanes, 4)
		require.LessOrEqual(t, c.largest, exchange.MaxLookups)
		before := c.count()
		require.LessOrEqual(t, before, 12)
		await(time.Hour)
		require.LessOrEqual(t, c.count()-before, 4*13, "one call each five minutes")

		changed, other := all[14].Changed(), all[20].Changed()
		c.set(func() { c.versions["nomad/jobs/7"] = 1 })
		synctest.Wait()
		<-changed
		select {
		case <-other:
			t.Error("it did not change")
		default:
		}
		require.Equal(t, "1", all[14].Known()[about("nomad/jobs/7")[0]].Version)
		require.Equal(t, "1", all[15].Known()[about("nomad/jobs/7")[0]].Version)
		for _, f := range all {
			f.Close()
		}
		await(time.Second)
		require.Empty(t, w.lanes)
		require.Empty(t, w.entries)
	})
}

// TestGoneAllocations: when the allocation that was asked for ends, another one's rights serve those that follow the same.
func TestGoneAllocations(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T, c *control, w *Watcher) {
		q := about("x")
		a, b := w.Follow(t.Context(), alloc("a", "j"), "t"), w.Follow(t.Context(), alloc("b", "j"), "t")
		a.Want(q)
		b.Want(q)
		await(time.Second)
		require.Equal(t, "a", string(b.Known()[q[0]].Data))
		c.set(func() { c.gone["a"], c.versions["x"] = true, 1 })
		await(time.Second)
		require.Equal(t, "b", string(b.Known()[q[0]].Data))
		c.set(func() { c.gone["b"] = true })
		await(time.Second)
		require.Equal(t, "the allocation has ended", b.Known()[q[0]].Refused)
		before := c.count()
		await(time.Hour)
		require.Less(t, c.count()-before, 15)
		later := w.Follow(t.Context(), alloc("c", "j"), "t")
		later.Want(q)
		await(time.Second)
		require.Equal(t, "c", string(later.Known()[q[0]].Data))
		for _, f := range []*Follower{a, b, later} {
			f.Close()
		}
		await(time.Second)
	})
}

// TestErrors: control is asked again, ever more slowly, until it answers.
func TestErrors(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T, c *control, w *Watcher) {
		c.err = drover.Errorf(drover.Unavailable, "no server")
		f := w.Follow(t.Context(), alloc("a", "j"), "t")
		f.Want(about("x", "y"))
		await(5 * time.Minute)
		require.Empty(t, f.Known())
		require.Less(t, c.count(), 20)
		c.set(func() { c.err = nil })
		await(31 * time.Second)
		require.Len(t, f.Known(), 2)
		f.Want(about("y"))
		require.Len(t, f.Known(), 1)
		f.Close()
		await(time.Minute)
		require.Empty(t, w.lanes)
	})
}

// Where the node's configuration says so, who has no answer is told after some tries that there is none; who has one keeps it. Both have
// the next.
func TestWhoHasNoAnswerIsToldAfterSomeTries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newControl()
		w := New(c, "n", Retry{Attempts: 3, First: time.Second, Most: 2 * time.Second}, clock.Wall{}, slog.New(slog.DiscardHandler))
		f := w.Follow(t.Context(), alloc("a", "j"), "t")
		defer f.Close()
		old, young := about("old")[0], about("young")[0]
		f.Want([]exchange.Question{old})
		await(time.Second)
		require.Equal(t, "0", f.Known()[old].Version)
		c.set(func() { c.err = errors.New("no route") })
		f.Want([]exchange.Question{old, young})
		await(2 * time.Second) // tries at about 0, 1 and 3 s
		require.NotContains(t, f.Known(), young)
		told := f.Changed()
		await(2 * time.Second)
		<-told
		require.Equal(t, exchange.Unanswered, f.Known()[young].Version)
		require.Equal(t, "no server answered 3 times (client.template.nomad_retry): no route", f.Known()[young].Refused)
		require.Equal(t, "0", f.Known()[old].Version, "it keeps its answer")
		c.set(func() { c.err = nil })
		await(3 * time.Second)
		require.Equal(t, "0", f.Known()[young].Version)
		require.Empty(t, f.Known()[young].Refused)
	})
}

// patient notes how long its calls may wait.
type patient struct {
	*control
	waits chan time.Duration
}

func (p patient) Look(ctx context.Context, nodeID string, asked []exchange.Lookup, wait time.Duration) ([]exchange.Found, error) {
	p.waits <- wait
	return p.control.Look(ctx, nodeID, asked, wait)
}

// How long a call waits at control the node's configuration says, up to what control allows.
func TestACallWaitsAsLongAsIsSaid(t *testing.T) {
	t.Parallel()
	for said, want := range map[time.Duration]time.Duration{0: maxWait, 7 * time.Second: 7 * time.Second, time.Hour: maxWait} {
		synctest.Test(t, func(t *testing.T) {
			p := patient{newControl(), make(chan time.Duration, 100)}
			f := New(p, "n", Retry{Wait: said}, clock.Wall{}, slog.New(slog.DiscardHandler)).Follow(t.Context(), alloc("a", "j"), "t")
			defer f.Close()
			f.Want(about("x"))
			require.Equal(t, want, <-p.waits)
		})
	}
}
