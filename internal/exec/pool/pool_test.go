package pool

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestStackGivesTheFreshestOnceEach(t *testing.T) {
	t.Parallel()
	var s Stack
	for _, id := range []string{"a", "b", "c", "d"} {
		require.True(t, s.Push(id))
	}
	require.False(t, s.Push("a"))
	require.True(t, s.Remove("c"))
	require.False(t, s.Remove("c"))
	var got []string
	for id, ok := s.Pop(); ok; id, ok = s.Pop() {
		got = append(got, id)
	}
	require.Equal(t, []string{"d", "b", "a"}, got)
	require.Zero(t, s.Len())
}

func TestQueueServesInOrderAndLetsLeave(t *testing.T) {
	t.Parallel()
	var q Queue[int]
	q.Join(1)
	second := q.Join(2)
	third := q.Join(3)
	require.True(t, q.Leave(second))
	require.False(t, q.Leave(second))
	first, ok := q.Serve()
	require.True(t, ok)
	require.Equal(t, 1, first)
	last, _ := q.Serve()
	require.Equal(t, 3, last)
	require.False(t, q.Leave(third), "it was served")
	_, ok = q.Serve()
	require.False(t, ok)
}

func TestDeadlinesAgreeWithASortedList(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var d Deadlines
		model := map[string]time.Time{}
		epoch := time.Unix(0, 0)
		for range rapid.IntRange(0, 50).Draw(t, "steps") {
			id := rapid.StringMatching(`[a-e]`).Draw(t, "id")
			at := epoch.Add(time.Duration(rapid.IntRange(0, 20).Draw(t, "at")))
			switch rapid.IntRange(0, 2).Draw(t, "op") {
			case 0:
				d.Set(id, at)
				model[id] = at
			case 1:
				d.Clear(id)
				delete(model, id)
			case 2:
				var want []string
				for m, mt := range model {
					if !mt.After(at) {
						want = append(want, m)
						delete(model, m)
					}
				}
				got := d.Due(at)
				slices.SortFunc(want, cmp.Compare[string])
				slices.SortFunc(got, cmp.Compare[string])
				require.Equal(t, want, got)
			}
			next, ok := d.Next()
			require.Equal(t, len(model) > 0, ok)
			for _, mt := range model {
				require.False(t, next.After(mt))
			}
		}
	})
}
