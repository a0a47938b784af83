package eventstream

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/fsm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	_ fsm.Observer        = (*Buffer)(nil)
	_ fsm.RestoreObserver = (*Buffer)(nil)
)

func entry(index uint64, events ...drover.Event) drover.Events {
	return drover.Events{Index: index, Events: events}
}

func alloc(id, job string) drover.Event {
	return drover.Event{
		Topic: drover.TopicAllocation, Key: id, Namespace: "default", FilterKeys: []string{job, ""},
		Payload: map[string]any{"Allocation": &drover.Allocation{ID: id}},
	}
}

func node(id string) drover.Event { return drover.Event{Topic: drover.TopicNode, Key: id} }

func next(t *testing.T, s *Subscription) uint64 {
	t.Helper()
	e, err := s.Next(t.Context())
	require.NoError(t, err)
	return e.Index
}

func subscribe(t *testing.T, b *Buffer, r Request) *Subscription {
	t.Helper()
	s, err := b.Subscribe(r)
	require.NoError(t, err)
	return s
}

func TestSubscribeByIndex(t *testing.T) {
	t.Parallel()
	b := New(Config{})
	for _, i := range []uint64{3, 5, 9} {
		b.Events(entry(i, node("n")))
	}
	require.Equal(t, uint64(3), next(t, subscribe(t, b, Request{})))
	require.Equal(t, uint64(5), next(t, subscribe(t, b, Request{Index: 5})), "N itself comes again")
	require.Equal(t, uint64(9), next(t, subscribe(t, b, Request{Index: 6})))
	later := subscribe(t, b, Request{Index: 12})
	b.Events(entry(11, node("n")))
	b.Events(entry(12, node("n")))
	require.Equal(t, uint64(12), next(t, later))
	for _, past := range []uint64{12, 4} {
		require.PanicsWithValue(t, fmt.Sprintf("invariant 10 (events increase): %d: events of this index are published after those of 12",
			past), func() {
			b.Events(entry(past, node("again")))
		})
	}
	require.Equal(t, 5, b.Stats().Entries, "an index comes once")
}

func TestFilters(t *testing.T) {
	t.Parallel()
	other := alloc("c", "web")
	other.Namespace = "other"
	e := entry(1, alloc("a", "web"), alloc("b", "db"), other, node("n"))
	for name, c := range map[string]struct {
		r    Request
		keys []string
	}{
		"all":           {Request{}, []string{"a", "b", "c", "n"}},
		"star":          {Request{Topics: map[string][]string{"*": {"*"}}, Namespace: "*"}, []string{"a", "b", "c", "n"}},
		"namespace":     {Request{Namespace: "default"}, []string{"a", "b", "n"}},
		"topic":         {Request{Topics: map[string][]string{"Node": {"*"}}}, []string{"n"}},
		"job's allocs":  {Request{Topics: map[string][]string{"Allocation": {"web"}}}, []string{"a", "c"}},
		"key":           {Request{Topics: map[string][]string{"Allocation": {"b"}, "Job": {"*"}}}, []string{"b"}},
		"any topic web": {Request{Topics: map[string][]string{"*": {"web"}}, Namespace: "other"}, []string{"c"}},
	} {
		got, ok := c.r.filter(e)
		require.True(t, ok, name)
		var keys []string
		for _, x := range got.Events {
			keys = append(keys, x.Key)
		}
		require.Equal(t, c.keys, keys, name)
	}
	_, ok := (&Request{Topics: map[string][]string{"Job": {"*"}}}).filter(e)
	require.False(t, ok)
}

func TestWhoIsTooSlowIsTold(t *testing.T) {
	t.Parallel()
	b := New(Config{MaxBytes: 5_000})
	slow := subscribe(t, b, Request{})
	for i := range uint64(20) {
		b.Events(entry(i+1, alloc("a", "j")))
	}
	require.LessOrEqual(t, b.Stats().Bytes, int64(5_000))
	_, err := slow.Next(t.Context())
	require.ErrorIs(t, err, ErrMissed)
	require.Equal(t, drover.Gone, drover.CodeOf(err))
	floor := b.Stats().Floor
	_, err = b.Subscribe(Request{Index: floor})
	require.ErrorIs(t, err, ErrMissed)
	require.Equal(t, floor+1, next(t, subscribe(t, b, Request{Index: floor + 1})))
	require.Equal(t, b.Stats().Oldest, next(t, subscribe(t, b, Request{})))

	s := subscribe(t, b, Request{})
	b.Restored(100)
	_, err = s.Next(t.Context())
	require.ErrorIs(t, err, ErrMissed)
	_, err = b.Subscribe(Request{Index: 100})
	require.ErrorIs(t, err, ErrMissed)
	s = subscribe(t, b, Request{Index: 101})
	b.Events(entry(101, node("n")))
	require.Equal(t, uint64(101), next(t, s))
}

// server.event_buffer_size bounds the entries, however small they are.
func TestSoManyEntriesAreKept(t *testing.T) {
	t.Parallel()
	b := New(Config{MaxEntries: 2})
	slow := subscribe(t, b, Request{})
	for i := range uint64(3) {
		b.Events(entry(i+1, node("n")))
	}
	require.Equal(t, 2, b.Stats().Entries)
	require.Equal(t, uint64(2), b.Stats().Oldest)
	_, err := slow.Next(t.Context())
	require.ErrorIs(t, err, ErrMissed)
}

func TestNextWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := New(Config{})
		s := subscribe(t, b, Request{})
		ctx, cancel := context.WithCancel(t.Context())
		var err error
		var wg sync.WaitGroup
		wg.Go(func() { _, err = s.Next(ctx) }) // ends by cancel
		synctest.Wait()
		cancel()
		wg.Wait()
		require.Equal(t, drover.Canceled, drover.CodeOf(err))
		wg.Go(func() { _, err = s.Next(t.Context()) }) // ends by the publication
		synctest.Wait()
		b.Events(entry(1, node("n")))
		wg.Wait()
		require.NoError(t, err)
		wg.Go(func() { _, err = s.Next(t.Context()) }) // ends by Close
		synctest.Wait()
		s.Close()
		s.Close()
		wg.Wait()
		require.Equal(t, drover.Gone, drover.CodeOf(err))
	})
}

// TestEveryEventOrMissed: whatever is published and dropped, a subscriber sees all from its index on without a hole,
// or is told.
func TestEveryEventOrMissed(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		b := New(Config{MaxBytes: 8_000})
		published := []uint64{}
		var subs []*Subscription
		var seen [][]uint64
		missed := map[int]bool{}
		index := uint64(0)
		for range rapid.IntRange(1, 80).Draw(rt, "steps") {
			switch rapid.IntRange(0, 3).Draw(rt, "step") {
			case 0, 1:
				index += rapid.Uint64Range(1, 3).Draw(rt, "gap")
				b.Events(entry(index, alloc(fmt.Sprint(index), "j")))
				published = append(published, index)
			case 2:
				if s, err := b.Subscribe(Request{Index: rapid.Uint64Range(0, index+2).Draw(rt, "from")}); err == nil {
					subs, seen = append(subs, s), append(seen, nil)
				}
			case 3:
				for i, s := range subs {
					ended, cancel := context.WithCancel(t.Context())
					cancel()
					e, err := s.Next(ended)
					if errors.Is(err, ErrMissed) {
						missed[i] = true
					} else if err == nil {
						seen[i] = append(seen[i], e.Index)
					}
				}
			}
		}
		for i, s := range subs {
			if missed[i] {
				continue
			}
			var want []uint64
			for _, p := range published {
				if p >= s.r.Index && (len(seen[i]) > 0 && p >= seen[i][0]) && len(want) < len(seen[i]) {
					want = append(want, p)
				}
			}
			require.Equal(t, want, seen[i])
			if len(seen[i]) > 0 && s.r.Index > 0 {
				require.Equal(t, firstFrom(published, s.r.Index), seen[i][0])
			}
		}
	})
}

func firstFrom(published []uint64, index uint64) uint64 {
	for _, p := range published {
		if p >= index {
			return p
		}
	}
	return 0
}

// TestASubscriberGetsEachEntryOnce: a subscription checks what it hands out.
func TestASubscriberGetsEachEntryOnce(t *testing.T) {
	t.Parallel()
	s := &Subscription{r: Request{Index: 5}}
	s.check(5)
	s.check(9)
	for _, index := range []uint64{4, 9} {
		require.Panics(t, func() { s.check(index) }, index)
	}
}
