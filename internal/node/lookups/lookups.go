package lookups

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/wake"
)

const (
	// maxWait is how long a call may wait at control.
	maxWait = 5 * time.Minute
	// gather is how long questions are gathered: tasks come in crowds, and each new call carries all of its lane.
	gather           = 20 * time.Millisecond
	again, againMost = time.Second, 30 * time.Second
)

// Retry is what follows an error. The zero value of a field means its default.
type Retry struct {
	Attempts    int           // errors one after the other until who has no answer is told that there is none; default: without end
	Wait        time.Duration // how long a call may wait at control; default and most 5 min
	First, Most time.Duration // how long a lane waits after the first, which doubles, and at most; default 1 s and 30 s
}

// Watcher follows answers. It is for any number of goroutines.
type Watcher struct {
	control exchange.Lookups
	nodeID  string
	retry   Retry
	clock   clock.Clock
	log     *slog.Logger

	mu      sync.Mutex // guards what follows, and all that it leads to
	entries map[shared]*entry
	lanes   []*lane
}

// shared is a question with whose rights it is asked.
type shared struct {
	namespace, job, group, task string
	question                    exchange.Question
}

// entry is a question that somebody follows.
type entry struct {
	key       shared
	lane      *lane
	followers map[*Follower]bool
	asks      *Follower // for whom control is asked
	found     *exchange.Found
}

// asking is a question as it is asked in one call.
type asking struct {
	entry *entry
	of    *Follower
}

// lane is what goes in one call.
type lane struct {
	entries map[*entry]bool
	stale   bool               // the call under way lacks a question
	cancel  context.CancelFunc // of that call; nil = there is none
	end     context.CancelFunc // of all that the lane does: nobody follows its entries any more
}

// New returns the Watcher of a node.
func New(control exchange.Lookups, nodeID string, retry Retry, c clock.Clock, log *slog.Logger) *Watcher {
	retry.Wait = min(cmp.Or(retry.Wait, maxWait), maxWait)
	retry.First = cmp.Or(retry.First, again)
	retry.Most = max(cmp.Or(retry.Most, againMost), retry.First)
	return &Watcher{control: control, nodeID: nodeID, retry: retry, clock: c, log: log, entries: map[shared]*entry{}}
}

// Follower follows what the templates of one task ask. Close it.
type Follower struct {
	watcher *Watcher
	ctx     context.Context // without an end
	of      shared          // without a question
	allocID string

	// Guarded by the watcher's mutex.
	follows map[*entry]bool
	gone    bool // control says that the allocation has ended

	changed wake.Broadcast // an answer did
}

// Follow returns the follower of an allocation's task, which follows nothing yet.
func (w *Watcher) Follow(ctx context.Context, alloc *drover.Allocation, task string) *Follower {
	return &Follower{
		watcher: w, ctx: context.WithoutCancel(ctx), of: shared{alloc.Namespace, alloc.JobID, alloc.TaskGroup, task, exchange.Question{}},
		allocID: alloc.ID, follows: map[*entry]bool{},
	}
}

// Want says which questions are followed from now on.
func (f *Follower) Want(questions []exchange.Question) {
	w := f.watcher
	w.mu.Lock()
	defer w.mu.Unlock()
	wanted := map[*entry]bool{}
	for _, q := range questions {
		key := f.of
		key.question = q
		e := w.entries[key]
		if e == nil {
			e = &entry{key: key, followers: map[*Follower]bool{}, asks: f}
			w.entries[key] = e
			w.place(e, f.ctx)
		}
		if e.asks.gone && !f.gone {
			e.asks = f
			if e.found != nil && e.found.Gone {
				e.found = nil
			}
			w.hurry(e.lane)
		}
		e.followers[f] = true
		wanted[e] = true
	}
	for e := range f.follows {
		if !wanted[e] {
			w.leave(e, f)
		}
	}
	f.follows = wanted
}

// Known returns the answers that there are.
func (f *Follower) Known() map[exchange.Question]exchange.Found {
	f.watcher.mu.Lock()
	defer f.watcher.mu.Unlock()
	out := make(map[exchange.Question]exchange.Found, len(f.follows))
	for e := range f.follows {
		if e.found != nil {
			out[e.key.question] = *e.found
		}
	}
	return out
}

// Changed returns a channel that the next change of an answer closes. Take it before Known.
func (f *Follower) Changed() <-chan struct{} {
	return f.changed.C()
}

// Close ends the following.
func (f *Follower) Close() { f.Want(nil) }

// leave takes a follower from an entry, and the entry away with the last. w.mu is held.
func (w *Watcher) leave(e *entry, f *Follower) {
	delete(e.followers, f)
	if len(e.followers) == 0 {
		delete(w.entries, e.key)
		delete(e.lane.entries, e)
		if len(e.lane.entries) == 0 {
			e.lane.end()
			w.lanes = slices.DeleteFunc(w.lanes, func(l *lane) bool { return l == e.lane })
		}
		return
	}
	if e.asks == f {
		e.askAnother()
	}
}

// askAnother has another follower's rights used, of those whose allocations live. w.mu is held.
func (e *entry) askAnother() (found bool) {
	for f := range e.followers {
		if !f.gone {
			e.asks = f
			return true
		}
	}
	return false
}

// place puts the entry into a lane that has room, or into a new one. w.mu is held.
func (w *Watcher) place(e *entry, ctx context.Context) {
	for _, l := range w.lanes {
		if len(l.entries) < exchange.MaxLookups {
			e.lane = l
			l.entries[e] = true
			w.hurry(l)
			return
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	l := &lane{entries: map[*entry]bool{e: true}, end: cancel}
	e.lane = l
	w.lanes = append(w.lanes, l)
	clock.Go(w.clock, func() { w.run(ctx, l) }) // ends when the lane is empty, by end
}

// hurry has the lane's next call begin soon. w.mu is held.
func (w *Watcher) hurry(l *lane) {
	if l.stale || l.cancel == nil {
		return // it is about to
	}
	l.stale = true
	w.clock.AfterFunc(gather, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if l.stale && l.cancel != nil {
			l.cancel()
		}
	})
}

// run asks what the lane has, until ctx ends.
func (w *Watcher) run(ctx context.Context, l *lane) {
	clock.Sleep(ctx, w.clock, gather)
	wait, failed := w.retry.First, 0
	for ctx.Err() == nil {
		call, cancel := context.WithCancel(ctx)
		list, asked := w.begin(l, cancel)
		found, err := w.control.Look(call, w.nodeID, asked, w.retry.Wait)
		cut := call.Err() != nil
		cancel()
		w.end(l, list, found)
		switch {
		case cut:
		case err != nil:
			if failed++; w.retry.Attempts > 0 && failed >= w.retry.Attempts {
				w.giveUp(list, err)
			}
			w.log.Warn("what templates ask is not answered", "questions", len(asked), "error", err, "again_ms", wait.Milliseconds())
			clock.Sleep(ctx, w.clock, wait)
			wait = min(2*wait, w.retry.Most)
		default:
			wait, failed = w.retry.First, 0
		}
	}
}

// giveUp tells those that have no answer that there is none. They have it when control answers after all.
func (w *Watcher) giveUp(list []asking, why error) {
	var none []exchange.Found
	w.mu.Lock()
	for at, a := range list {
		if a.entry.found == nil {
			none = append(none, exchange.Found{At: at, Version: exchange.Unanswered, Refused: fmt.Sprintf(
				"no server answered %d times (client.template.nomad_retry): %v", w.retry.Attempts, why)})
		}
	}
	w.mu.Unlock()
	w.tell(list, none)
}

// begin returns the lane's questions.
func (w *Watcher) begin(l *lane, cancel context.CancelFunc) (list []asking, asked []exchange.Lookup) {
	w.mu.Lock()
	defer w.mu.Unlock()
	l.stale, l.cancel = false, cancel
	for e := range l.entries {
		q := exchange.Lookup{AllocID: e.asks.allocID, Task: e.key.task, Question: e.key.question}
		if e.found != nil {
			q.Seen = e.found.Version
		}
		list, asked = append(list, asking{e, e.asks}), append(asked, q)
	}
	return list, asked
}

// end takes the answers of a call, and tells of them.
func (w *Watcher) end(l *lane, list []asking, found []exchange.Found) {
	w.mu.Lock()
	l.cancel = nil
	w.mu.Unlock()
	w.tell(list, found)
}

// tell has the answers known to who asked.
func (w *Watcher) tell(list []asking, found []exchange.Found) {
	w.mu.Lock()
	defer w.mu.Unlock()
	told := map[*Follower]bool{}
	for _, f := range found {
		if f.At < 0 || f.At >= len(list) {
			continue
		}
		e := list[f.At].entry
		if f.Gone {
			list[f.At].of.gone = true
			if e.asks != list[f.At].of || e.askAnother() {
				continue
			}
			f.Refused = "the allocation has ended"
		}
		e.found = &f
		maps.Copy(told, e.followers)
	}
	for f := range told {
		f.changed.Send()
	}
}
