package diskuse

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
)

// What a task writes to the machine's file systems no mount can bound. So it is watched: what a file system has free tells
// in one call whether any task can have written much, and only then folders are measured.
const (
	look = 250 * time.Millisecond
	// A folder is measured after this time in any case, because another task may free what this one takes. Measuring
	// must stay cheap: the time is at least staleTimes as long as the last measurement took, and at most staleMost.
	stale      = 5 * time.Second
	staleTimes = 1000
	staleMost  = time.Minute
	// share is which part of a core measuring one task may take: large trees are measured seldom.
	share = 20
	// inodesPerMB as a sandbox's writable layer has them, and the least.
	inodesPerMB = 256
	leastInodes = 16384
)

// Watch watches the tasks of a driver. Its goroutine lives while there are any.
type Watch struct {
	Clock clock.Clock

	mu      sync.Mutex
	tasks   map[*Watched]bool // guarded by mu
	running bool              // guarded by mu
}

// Watched is one task. Once it was added, it is the watch's.
type Watched struct {
	Dirs []string // what they hold together may be
	MB   int64    // so much
	What string   // what the folders are, for people: "its allocation's folder"
	By   string   // where the bound is set: "ephemeral_disk has size = 300"
	// Pids are the task's processes: what they hold open that has no name any more is counted too.
	Pids func() []int
	// Root, if set, is another file system that they hold such files open on: an overlay, whose files are in Dirs.
	Root string
	// Over is called, once, when they hold more.
	Over func(ctx context.Context, reason error)

	at   time.Time // of the last measurement
	took time.Duration
	free map[unix.Fsid]Usage // of the file systems then
	room Usage               // what could be written more
	over bool
}

// allowed is the bound in bytes and files: many empty files take inodes of the disk too.
func (t *Watched) allowed() Usage {
	return Usage{Bytes: t.MB << 20, Files: max(t.MB*inodesPerMB, leastInodes)}
}

// Add begins to watch.
func (w *Watch) Add(ctx context.Context, t *Watched) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.tasks == nil {
		w.tasks = map[*Watched]bool{}
	}
	w.tasks[t] = true
	if !w.running {
		w.running = true
		go w.run(context.WithoutCancel(ctx)) // ends when the last task is removed
	}
}

// Remove ends it. Idempotent.
func (w *Watch) Remove(t *Watched) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.tasks, t)
}

// run looks at all tasks every quarter of a second, until there is none. Add starts another one then.
func (w *Watch) run(ctx context.Context) {
	for {
		w.mu.Lock()
		if len(w.tasks) == 0 {
			w.running = false
			w.mu.Unlock()
			return
		}
		tasks := make([]*Watched, 0, len(w.tasks))
		for t := range w.tasks {
			tasks = append(tasks, t)
		}
		w.mu.Unlock()
		w.look(ctx, tasks)
		clock.Sleep(ctx, w.Clock, look)
	}
}

// look measures those that may have come over their limit.
func (w *Watch) look(ctx context.Context, tasks []*Watched) {
	for _, t := range tasks {
		if t.over {
			continue
		}
		if free := t.left(); len(free) > 0 && t.due(w.Clock.Now(), free) {
			w.measure(ctx, t, free)
		}
	}
}

// left returns what each file system under the folders has free. A folder that is being removed is left out.
func (t *Watched) left() map[unix.Fsid]Usage {
	free := make(map[unix.Fsid]Usage, 1)
	for _, dir := range t.Dirs {
		var st unix.Statfs_t
		if unix.Statfs(dir, &st) == nil {
			free[st.Fsid] = Usage{Bytes: int64(st.Bfree) * st.Bsize, Files: int64(st.Ffree)} // sizes of a disk
		}
	}
	return free
}

// due reports whether the task has to be measured now. It has when its file systems lost as much space as it had left,
// or when the last measurement is old. It never is before share times the last one's duration.
func (t *Watched) due(now time.Time, free map[unix.Fsid]Usage) bool {
	var lost Usage // what one file system gains is no room on another
	for id, had := range t.free {
		lost.Bytes += max(had.Bytes-free[id].Bytes, 0)
		lost.Files += max(had.Files-free[id].Files, 0)
	}
	age, grown := now.Sub(t.at), lost.Bytes >= t.room.Bytes || lost.Files >= t.room.Files
	old := min(max(stale, staleTimes*t.took), staleMost)
	return t.at.IsZero() || age >= share*t.took && (grown || age >= old)
}

// measure measures the task and calls Over once it holds too much. Other errors change nothing: a folder may be about to
// go.
func (w *Watch) measure(ctx context.Context, t *Watched, free map[unix.Fsid]Usage) {
	from := w.Clock.Now()
	used, err := t.used()
	t.at = w.Clock.Now()
	t.took, t.free = t.at.Sub(from), free
	allowed := t.allowed()
	t.room = Usage{Bytes: allowed.Bytes - used.Bytes, Files: allowed.Files - used.Files}
	if errors.Is(err, ErrMore) || errors.Is(err, ErrDeep) {
		t.over = true
		t.Over(ctx, t.reason(used, err))
	}
}

// used measures all folders, with what the task's processes hold open there that has no name any more.
func (t *Watched) used() (used Usage, err error) {
	allowed, pids := t.allowed(), t.Pids()
	if t.Root != "" {
		used = Deleted(t.Root, pids)
	}
	for _, dir := range t.Dirs {
		var one Usage
		bound := Usage{Bytes: max(allowed.Bytes-used.Bytes, 1), Files: max(allowed.Files-used.Files, 1)} // zero would be none
		if one, err = Measure(dir, bound); err == nil {
			gone := Deleted(dir, pids)
			one.Bytes, one.Files = one.Bytes+gone.Bytes, one.Files+gone.Files
		}
		used.Bytes, used.Files = used.Bytes+one.Bytes, used.Files+one.Files
		switch {
		case errors.Is(err, ErrMore), errors.Is(err, ErrDeep):
			return used, err
		case used.Bytes > allowed.Bytes, used.Files > allowed.Files:
			return used, ErrMore
		}
	}
	return used, nil
}

// reason says what was too much.
func (t *Watched) reason(used Usage, err error) error {
	what := fmt.Sprintf("more than %d MB", t.MB)
	switch {
	case errors.Is(err, ErrDeep):
		what = "folders nested too deeply"
	case used.Bytes <= t.MB<<20:
		what = fmt.Sprintf("more than %d files", t.allowed().Files)
	}
	return drover.Errorf(drover.Exhausted, "%s held %s (%s)", t.What, what, t.By)
}
