package leases

import (
	"slices"
	"time"
)

// The times of leases. A server that heard nothing of the leader for Lasts hands out nothing more. The leader waits longer. And
// it counts from when it was asked, while the server counts from before it asked: so the server always stops first.
const (
	Renew = time.Second             // how often a server asks the leader
	Quiet = 1500 * time.Millisecond // from when the leader was asked: it looks whether the server's process is gone
	Lasts = 4 * time.Second         // from before the server asked
	Ends  = 6 * time.Second         // from when the leader was asked
)

// BeatEvery is how often the leader notes that it runs. A leader that noted nothing for Still has stood still, and others may
// lead since. From then on it promises nothing for Still: within that time raft tells it, as it reaches no majority or hears of
// another leader.
const (
	BeatEvery = 250 * time.Millisecond
	Still     = time.Second
)

// Watch is the leader's view of the incarnations: who is still heard of. The zero value has seen none, and promises nothing yet.
type Watch struct {
	heard map[uint64]time.Time
	asked map[uint64]bool // it was heard of, not only seen
	beat  time.Time       // the newest
	went  time.Time       // when it went on after it had stood still
}

// Beat notes that the leader runs. A leader that stood still cannot say that others were silent: all count as heard of anew.
func (w *Watch) Beat(now time.Time) {
	if !w.beat.IsZero() && now.Sub(w.beat) > Still {
		w.went, w.heard, w.asked = now, nil, nil
	}
	w.beat = now
}

// Heard notes that the incarnation asked for its leases to go on. It reports false if the leader cannot promise that: it has
// not begun, or it stood still a moment ago, and another leader may have ended the incarnation.
func (w *Watch) Heard(now time.Time, incarnation uint64) bool {
	if w.beat.IsZero() || now.Sub(w.beat) > Still || !w.went.IsZero() && now.Sub(w.went) < Still {
		return false
	}
	w.note(now, incarnation)
	w.asked[incarnation] = true
	return true
}

func (w *Watch) note(now time.Time, incarnation uint64) {
	if w.heard == nil {
		w.heard, w.asked = map[uint64]time.Time{}, map[uint64]bool{}
	}
	w.heard[incarnation] = now
}

// Silent reports whether nothing was heard of the incarnation for Quiet, or ever.
func (w *Watch) Silent(now time.Time, incarnation uint64) bool {
	at, ok := w.heard[incarnation]
	return !ok || !w.asked[incarnation] || !now.Before(at.Add(Quiet))
}

// Due returns which of the live incarnations were not heard of for Ends, in order, and when to ask again. One that is seen for
// the first time counts as heard of now: a leader that just began knows nothing of what its predecessor heard.
func (w *Watch) Due(now time.Time, live []uint64) (due []uint64, again time.Time) {
	again = now.Add(Ends)
	for incarnation := range w.heard {
		if !slices.Contains(live, incarnation) {
			delete(w.heard, incarnation)
			delete(w.asked, incarnation)
		}
	}
	for _, incarnation := range live {
		at, ok := w.heard[incarnation]
		if !ok {
			w.note(now, incarnation)
			at = now
		}
		switch ends := at.Add(Ends); {
		case !now.Before(ends):
			due = append(due, incarnation)
		case ends.Before(again):
			again = ends
		}
	}
	slices.Sort(due)
	return due, again
}
