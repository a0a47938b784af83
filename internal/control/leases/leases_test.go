package leases

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestChoose(t *testing.T) {
	t.Parallel()
	require.Equal(t, -1, Choose(nil))
	for name, c := range map[string]struct {
		holders []Holder
		want    int
	}{
		"the fewest":                     {[]Holder{{1, 2, 0}, {2, 1, 0}, {3, 2, 0}}, 1},
		"the oldest of equals":           {[]Holder{{3, 1, 0}, {2, 1, 0}}, 1},
		"who waits in vain":              {[]Holder{{1, 0, 0}, {2, 1, 2}}, 1},
		"who waits longest in vain":      {[]Holder{{1, 0, 1}, {2, 1, 4}}, 1},
		"what it has is for its waiters": {[]Holder{{1, 0, 0}, {2, 2, 2}}, 0},
	} {
		require.Equal(t, c.want, Choose(c.holders), name)
	}
}

// Once the pool has its size and the demand, and what is started goes where it is chosen for, nobody waits in vain.
func TestTheDemandServesAll(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		holders := make([]Holder, rapid.IntRange(1, 5).Draw(t, "servers"))
		held, waits := 0, 0
		for i := range holders {
			holders[i] = Holder{uint64(i + 1), rapid.IntRange(0, 4).Draw(t, "held"), rapid.IntRange(0, 4).Draw(t, "wanted")}
			held += holders[i].Held
			waits += holders[i].lacks()
		}
		size := rapid.IntRange(0, 10).Draw(t, "size")
		demand := Demand(holders, size)
		for range size + demand - held {
			holders[Choose(holders)].Held++
		}
		for _, h := range holders {
			require.Zero(t, h.lacks())
		}
		require.True(t, waits > 0 || demand == 0)
		require.LessOrEqual(t, demand, held+waits)
	})
}

// Runners that are given out one after the other are spread evenly, whatever the order of the holders.
func TestRunnersAreSpread(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		holders := make([]Holder, rapid.IntRange(1, 7).Draw(t, "servers"))
		for i := range holders {
			holders[i].Incarnation = uint64(i + 1)
		}
		holders = rapid.Permutation(holders).Draw(t, "holders")
		for range rapid.IntRange(0, 50).Draw(t, "runners") {
			holders[Choose(holders)].Held++
		}
		for _, h := range holders {
			require.InDelta(t, holders[0].Held, h.Held, 1)
		}
	})
}

// The leader looks early at who is silent: who did not ask for a moment, and whoever it never heard of.
func TestWhoIsSilent(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	var w Watch
	require.True(t, w.Silent(now, 7))
	_, _ = w.Due(now, []uint64{7})
	require.True(t, w.Silent(now, 7), "it was only seen")
	w.Beat(now)
	w.Heard(now, 7)
	require.False(t, w.Silent(now.Add(Quiet-1), 7))
	require.True(t, w.Silent(now.Add(Quiet), 7))
	due, _ := w.Due(now.Add(Quiet), []uint64{7})
	require.Empty(t, due, "it keeps its leases")
	_, _ = w.Due(now, nil)
	_, _ = w.Due(now, []uint64{7})
	require.True(t, w.Silent(now, 7), "nothing is remembered of who ended")
}

// A server hands out nothing any more when the leader takes its leases away, however late the leader's answers come.
func TestLeasesEndAfterTheirServerKnows(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		start := time.Unix(1e9, 0)
		now, holds := start, start // how long the server hands out
		var w Watch
		goOn := func(d time.Duration) {
			for end := now.Add(d); now.Before(end); w.Beat(now) {
				now = now.Add(min(BeatEvery, end.Sub(now)))
			}
		}
		w.Beat(now)
		due, again := w.Due(now, []uint64{7})
		require.Empty(t, due, "a leader that begins has heard of nobody")
		for range rapid.IntRange(0, 20).Draw(t, "questions") {
			asked := now
			goOn(time.Duration(rapid.IntRange(0, 3000).Draw(t, "there")) * time.Millisecond)
			if due, again = w.Due(now, []uint64{7}); len(due) > 0 {
				break
			}
			require.True(t, w.Heard(now, 7))
			holds = asked.Add(Lasts)
			goOn(time.Duration(rapid.IntRange(0, 3000).Draw(t, "back")) * time.Millisecond)
		}
		for len(due) == 0 {
			if again.After(now) {
				now = again
			}
			due, again = w.Due(now, []uint64{7})
		}
		require.Equal(t, []uint64{7}, due)
		require.False(t, now.Before(holds))
		due, _ = w.Due(now, nil)
		require.Empty(t, due, "it has ended")
	})
}

// A leader that was stopped and goes on may be none any more. It promises nothing until raft had time to tell it, and ends
// nobody's leases because it did not hear of them meanwhile.
func TestALeaderThatStoodStillPromisesNothing(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	var w Watch
	require.False(t, w.Heard(now, 7), "it has not begun")
	w.Beat(now)
	require.True(t, w.Heard(now, 7))
	now = now.Add(20 * time.Second)
	require.False(t, w.Heard(now, 7), "before its next beat")
	w.Beat(now)
	require.False(t, w.Heard(now, 7), "right after it")
	due, _ := w.Due(now, []uint64{7})
	require.Empty(t, due)
	for range 4 {
		now = now.Add(BeatEvery)
		w.Beat(now)
	}
	require.True(t, w.Heard(now, 7))
}
