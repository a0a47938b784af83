package refill

import (
	"context"
	"sync"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/wake"
)

// Starting a warm runner costs more than a claim and a first command, and competes with them for the cores. While runners
// of this node are in use, the replacements that start at the same time are bounded to half of the cores, and leave one
// core free at least. On two cores this means that a replacement starts only after refillPatience, and alone. A scarce warm
// pool waits only for about as long as those who emptied it need for their first commands; then all its replacements start
// at once. All of them also start as soon as no runner was used for refillCalm.
//
// Where several servers share a pool each hands out only what is leased to it. One that hands out a lot has next to nothing left
// while the others' runners lie idle. So a pool is scarce as well when such a server's share of it is.
const (
	refillCalm     = 20 * time.Millisecond  // without a claim, a new command or file
	refillPatience = 500 * time.Millisecond // a runner is missed for no longer than this
	refillScarce   = 4                      // a pool is scarce below this part of its size, as far as it is on this node
	refillHaste    = time.Millisecond       // of patience for each runner of a scarce pool
	refillHasteMax = 100 * time.Millisecond
	refillDrawn    = time.Second // a server from whose share nothing was claimed for so long is not one that hands out
)

// Pacer paces the starts of the runners that replace claimed ones. Its methods may be called by any goroutine.
type Pacer struct {
	clock clock.Clock
	limit int // starts at once while it is busy; one more than none when patience ended

	mu       sync.Mutex // guards what follows, and what is in pools
	used     time.Time  // when a runner was last used
	pools    map[drover.NamespacedID]*localPool
	of       map[string]*refill // by allocation
	starting int
	changed  wake.Broadcast // another may have its turn
}

// localPool is the part of a warm pool that is on this node.
type localPool struct {
	key     drover.NamespacedID
	turn    chan struct{} // capacity 1: held by the next to start
	warm    int           // that were started by this agent, and are not claimed
	members int           // that wait, start or are warm
	shares  map[uint64]*share
}

// share is what is leased to one server (drover.Allocation.Lease). The share of 0 is what is not known to be leased yet.
type share struct {
	warm  int
	drawn time.Time // when one of it was claimed
}

// share returns the one of the lease.
func (w *localPool) share(lease uint64) *share {
	s := w.shares[lease]
	if s == nil {
		s = &share{}
		w.shares[lease] = s
	}
	return s
}

// scarce reports whether those who claim from the pool may soon find nothing.
func (w *localPool) scarce(size int, now time.Time) bool {
	if w.warm*refillScarce < size {
		return true
	}
	fresh, least, sharing := 0, -1, 0
	for lease, s := range w.shares {
		drawn := now.Sub(s.drawn) < refillDrawn
		switch {
		case lease == 0:
			fresh = s.warm
			continue
		case s.warm == 0 && !drawn:
			delete(w.shares, lease) // its server may have ended
			continue
		case drawn && (least < 0 || s.warm < least):
			least = s.warm
		}
		sharing++
	}
	return least >= 0 && (least+fresh)*sharing*refillScarce < size
}

// refill is a runner of a warm pool that was not claimed yet.
type refill struct {
	*localPool
	phase refillPhase
	lease uint64
}

// refillPhase is how far a replacement is; it only grows.
type refillPhase int

const (
	// refillWaits: it is in the pool's queue. refillStarts: it counts among the starts. refillWarm: it can be claimed.
	refillWaits refillPhase = iota
	refillStarts
	refillWarm
)

// New returns the pacing of a node with so many cores. One core stays free and half of the rest may start
// runners, rounded down: none on two cores, until their patience has ended.
func New(c clock.Clock, cores int) *Pacer {
	return &Pacer{
		clock: c, limit: max(0, cores-1) / 2, pools: map[drover.NamespacedID]*localPool{}, of: map[string]*refill{},
	}
}

// MarkUsed notes that a runner is used: it is claimed, a command starts, a file is written.
func (f *Pacer) MarkUsed() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.used = f.clock.Now()
}

// Busy reports whether a runner was used just now.
func (f *Pacer) Busy() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.clock.Now().Sub(f.used) < refillCalm
}

// Await returns when the allocation may start, or ctx ended. What is no replacement may start at once.
func (f *Pacer) Await(ctx context.Context, a *drover.Allocation) {
	size := poolSize(a)
	if size == 0 {
		return
	}
	w, since := f.join(a), f.clock.Now()
	select {
	case w.turn <- struct{}{}:
		defer func() { <-w.turn }()
	case <-ctx.Done():
		return
	}
	for {
		changed, wait := f.enter(a.ID, w, size, since)
		if wait <= 0 {
			return
		}
		t := f.clock.NewTimer(wait)
		select {
		case <-changed:
			t.Stop()
		case <-t.C():
		case <-ctx.Done():
			t.Stop()
			return
		}
	}
}

// poolSize is that of an unclaimed runner's pool; 0 for all others.
func poolSize(a *drover.Allocation) int {
	if a.Job == nil || a.Claim != nil {
		return 0
	}
	if g := a.Job.Group(a.TaskGroup); g != nil && g.Pool != nil {
		return max(1, g.Pool.Size)
	}
	return 0
}

// join makes the allocation one of its pool's.
func (f *Pacer) join(a *drover.Allocation) *localPool {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := drover.NamespacedID{Namespace: a.Namespace, ID: a.JobID}
	w := f.pools[key]
	if w == nil {
		w = &localPool{key: key, turn: make(chan struct{}, 1), shares: map[uint64]*share{}}
		f.pools[key] = w
	}
	w.members++
	f.of[a.ID] = &refill{localPool: w}
	return w
}

// enter takes a turn (0), or says how long to wait for one at most.
func (f *Pacer) enter(id string, w *localPool, size int, since time.Time) (changed <-chan struct{}, wait time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.clock.Now()
	scarce := w.scarce(size, now)
	patience, limit := refillPatience, f.limit
	if scarce {
		patience = min(refillHasteMax, time.Duration(size)*refillHaste)
	}
	calm, left := f.used.Add(refillCalm).Sub(now), since.Add(patience).Sub(now)
	if left <= 0 {
		limit = max(1, limit)
	}
	if calm > 0 && f.starting >= limit && (left > 0 || !scarce) {
		if left > 0 {
			calm = min(calm, left)
		}
		return f.changed.C(), calm
	}
	if r := f.of[id]; r != nil { // else it ended meanwhile
		r.phase = refillStarts
		f.starting++
	}
	return nil, 0
}

// Observe takes what became of an allocation.
func (f *Pacer) Observe(id, status string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.of[id]
	switch {
	case r == nil || status == drover.AllocClientPending:
	case status != drover.AllocClientRunning:
		f.forgetLocked(id)
	case r.phase == refillStarts:
		r.phase = refillWarm
		r.warm++
		r.share(r.lease).warm++
		f.startedLocked()
	}
}

// Learn takes what control says of an allocation: who may hand it out, and that it was handed out and is not warm any more.
func (f *Pacer) Learn(a *drover.Allocation) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.of[a.ID]
	if r == nil { // it is known as claimed
		return
	}
	if r.phase == refillWarm && r.lease != a.Lease {
		r.share(r.lease).warm--
		r.share(a.Lease).warm++
	}
	if r.lease = a.Lease; a.Claim == nil {
		return
	}
	f.used = f.clock.Now()
	r.share(r.lease).drawn = f.used
	f.forgetLocked(a.ID)
}

// forgetLocked takes an allocation out of its pool, whatever its phase, and gives its place to others. One that is
// unknown changes nothing. The pool goes with its last member. f.mu is held.
func (f *Pacer) forgetLocked(id string) {
	r := f.of[id]
	if r == nil {
		return
	}
	delete(f.of, id)
	if r.members--; r.members == 0 {
		delete(f.pools, r.key)
	}
	switch r.phase {
	case refillWaits:
	case refillStarts:
		f.startedLocked()
	case refillWarm:
		r.warm--
		r.share(r.lease).warm--
	}
}

// startedLocked ends one start, and lets those who wait look again. f.mu is held.
func (f *Pacer) startedLocked() {
	f.starting--
	f.changed.Send()
}
