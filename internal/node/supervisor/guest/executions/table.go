package executions

import (
	"slices"
	"sync"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/node/supervisor/guest/process"
	"github.com/drover-project/drover/internal/node/supervisor/guest/program"
)

// maxFinished is how many receipts, with their output, are kept at once: each may hold 1 MB for each stream.
const maxFinished = 64

// The bounds of executions whose end was read, and of their output in bytes of memory. The newest is kept in any case.
const (
	maxTaken      = 64
	maxTakenBytes = 2 << 20
)

// ErrStopping is the answer to starts while everything is being killed.
var ErrStopping = drover.Errorf(drover.Gone, "the supervisor is shutting down")

// Table holds the executions of one guest, from their start to when their exit was fetched.
type Table struct {
	launcher *program.Launcher
	finished func() // something ended

	mu     sync.Mutex
	byID   map[string]*command // guarded by mu
	ended  []string            // ids in byID of what has finished and is to be read, the oldest first; guarded by mu
	taken  []*command          // in byID, of what has finished and was read, the oldest first; guarded by mu
	closed bool                // nothing can be started; guarded by mu
}

// NewTable returns an empty table. finished is called whenever an execution has ended.
func NewTable(l *program.Launcher, finished func()) *Table {
	return &Table{launcher: l, finished: finished, byID: map[string]*command{}}
}

// CloseIfEmpty refuses all further starts, forgets the executions whose end was read, and reports true, if there are no others.
func (t *Table) CloseIfEmpty() bool {
	t.mu.Lock()
	taken := t.taken
	empty := len(t.byID) == len(taken)
	if empty {
		clear(t.byID)
		t.taken, t.closed = nil, true
	}
	t.mu.Unlock()
	if empty {
		stopLeaving(taken)
	}
	return empty
}

// Reopen takes starts again.
func (t *Table) Reopen() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = false
}

// Stop refuses all further starts, and makes the ends of those that run ends of the whole runner. The caller kills them.
func (t *Table) Stop() {
	t.mu.Lock()
	t.closed = true
	list := t.allLocked()
	t.mu.Unlock()
	for _, x := range list {
		x.markKilled(execution.CauseRunnerGone)
	}
}

// Busy reports whether something runs.
func (t *Table) Busy() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.byID) > len(t.ended)+len(t.taken)
}

// List describes what is kept, in no order.
func (t *Table) List() []execution.Execution {
	t.mu.Lock()
	all := t.allLocked()
	t.mu.Unlock()
	list := make([]execution.Execution, 0, len(all))
	for _, x := range all {
		list = append(list, x.describe())
	}
	return list
}

// allLocked copies the list, since an execution's lock must not be taken under the table's. Caller holds mu.
func (t *Table) allLocked() []*command {
	all := make([]*command, 0, len(t.byID))
	for _, x := range t.byID {
		all = append(all, x)
	}
	return all
}

// claim takes the id. Errors: Invalid, Conflict, Gone.
func (t *Table) claim(x *command) error {
	if x.spec.ID == "" || len(x.spec.Argv) == 0 || x.spec.Argv[0] == "" {
		return drover.Errorf(drover.Invalid, "an execution needs an id and a command")
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return ErrStopping
	}
	if t.byID[x.spec.ID] != nil {
		return drover.Errorf(drover.Conflict, "execution id %q is in use", x.spec.ID)
	}
	x.child = process.Unstarted() // until it has one: it can be listed already
	t.byID[x.spec.ID] = x
	return nil
}

// find returns an execution. Errors: NotFound.
func (t *Table) find(id string) (*command, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if x := t.byID[id]; x != nil {
		return x, nil
	}
	return nil, drover.Errorf(drover.NotFound, "no execution %q", id)
}

// noteFinished bounds how many ended executions are kept for agents that may come back.
func (t *Table) noteFinished(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = append(t.ended, id)
	if len(t.ended) > maxFinished {
		delete(t.byID, t.ended[0])
		t.ended = t.ended[1:]
	}
}

// take notes that the execution's end was read. Its output is kept in as little memory as it needs, and the oldest are forgotten when
// all that is too much.
func (t *Table) take(x *command) {
	x.mu.Lock()
	again, size := x.read, 0
	x.read = true
	for i := range x.out {
		x.out[i].shrink()
		size += len(x.out[i].buf)
	}
	x.mu.Unlock()
	if !again {
		stopLeaving(t.keep(x, size))
	}
}

// keep adds an execution to those whose end was read, and returns those that are forgotten for it.
func (t *Table) keep(x *command, size int) (old []*command) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.Index(t.ended, x.spec.ID)
	if i < 0 || t.byID[x.spec.ID] != x {
		return nil // it is forgotten
	}
	t.ended = slices.Delete(t.ended, i, i+1)
	x.size = size
	t.taken = append(t.taken, x)
	first, all := len(t.taken)-1, size
	for ; first > 0 && len(t.taken)-first < maxTaken && all+t.taken[first-1].size <= maxTakenBytes; first-- {
		all += t.taken[first-1].size
	}
	old = slices.Clone(t.taken[:first])
	t.taken = slices.Delete(t.taken, 0, first)
	for _, x := range old {
		delete(t.byID, x.spec.ID)
	}
	return old
}

// stopLeaving stops the timers of executions that are forgotten, which would keep their output in memory.
func stopLeaving(forgotten []*command) {
	for _, x := range forgotten {
		x.mu.Lock()
		if x.leaving != nil {
			x.leaving.Stop()
		}
		x.mu.Unlock()
	}
}

// forget frees an execution's id and output. It leaves a newer one that has taken the id since.
func (t *Table) forget(x *command) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byID[x.spec.ID] != x {
		return
	}
	delete(t.byID, x.spec.ID)
	if i := slices.Index(t.ended, x.spec.ID); i >= 0 {
		t.ended = slices.Delete(t.ended, i, i+1)
	}
	if i := slices.Index(t.taken, x); i >= 0 {
		t.taken = slices.Delete(t.taken, i, i+1)
	}
}
