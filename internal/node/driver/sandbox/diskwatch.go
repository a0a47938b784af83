package sandbox

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"drover"
	"drover/internal/clock"
	"drover/internal/node/diskuse"
)

// A task's allocation lies on the machine's file system, where no mount can bound it. So it is watched: what a file
// system has free tells in one call whether any task can have written much, and only then folders are measured.
const (
	diskLook = 250 * time.Millisecond
	// diskStale is after what time a folder is measured anyway: somebody else may have deleted what the task wrote.
	diskStale = time.Minute
	// diskShare is which part of a core measuring one folder may take: large trees are measured seldom.
	diskShare = 20
	// inodesPerMB as the writable layer has them, and the least.
	inodesPerMB = 256
	leastInodes = 16384
)

// diskLimit is what an allocation's folder may take.
type diskLimit struct {
	Dir string `json:"dir"`
	MB  int64  `json:"mb"`
}

func (l diskLimit) allowed() diskuse.Usage {
	return diskuse.Usage{Bytes: l.MB << 20, Files: max(l.MB*inodesPerMB, leastInodes)}
}

// diskWatch watches the tasks of a driver. Its goroutine lives while there are any.
type diskWatch struct {
	clock clock.Clock

	mu      sync.Mutex
	tasks   map[*watched]bool // guarded by mu
	running bool              // guarded by mu
}

// watched is one task. Owned by the watch's goroutine but for what is constant.
type watched struct {
	limit diskLimit
	pids  func() []int // of the task
	kill  func(ctx context.Context, reason error)

	at   time.Time // of the last measurement
	took time.Duration
	free diskuse.Usage // of the file system then
	room diskuse.Usage // what could be written more
	over bool
}

func (w *diskWatch) add(ctx context.Context, t *watched) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.tasks == nil {
		w.tasks = map[*watched]bool{}
	}
	w.tasks[t] = true
	if !w.running {
		w.running = true
		go w.run(context.WithoutCancel(ctx)) // ends when the last task is removed
	}
}

func (w *diskWatch) remove(t *watched) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.tasks, t)
}

func (w *diskWatch) run(ctx context.Context) {
	for {
		w.mu.Lock()
		if len(w.tasks) == 0 {
			w.running = false
			w.mu.Unlock()
			return
		}
		tasks := make([]*watched, 0, len(w.tasks))
		for t := range w.tasks {
			tasks = append(tasks, t)
		}
		w.mu.Unlock()
		w.look(ctx, tasks)
		clock.Sleep(ctx, w.clock, diskLook)
	}
}

// look measures those that may have come over their limit.
func (w *diskWatch) look(ctx context.Context, tasks []*watched) {
	free := map[unix.Fsid]diskuse.Usage{}
	for _, t := range tasks {
		if t.over {
			continue
		}
		var st unix.Statfs_t
		if unix.Statfs(t.limit.Dir, &st) != nil {
			continue // it is being removed
		}
		if _, known := free[st.Fsid]; !known {
			free[st.Fsid] = diskuse.Usage{Bytes: int64(st.Bfree) * st.Bsize, Files: int64(st.Ffree)} //nolint:gosec // sizes of a disk
		}
		if t.due(w.clock.Now(), free[st.Fsid]) {
			w.measure(ctx, t, free[st.Fsid])
		}
	}
}

func (t *watched) due(now time.Time, free diskuse.Usage) bool {
	age := now.Sub(t.at)
	grown := t.free.Bytes-free.Bytes >= t.room.Bytes || t.free.Files-free.Files >= t.room.Files
	return t.at.IsZero() || age >= diskShare*t.took && (grown || age >= diskStale)
}

func (w *diskWatch) measure(ctx context.Context, t *watched, free diskuse.Usage) {
	from := w.clock.Now()
	allowed := t.limit.allowed()
	used, err := diskuse.Measure(t.limit.Dir, allowed)
	if err == nil {
		gone := diskuse.Deleted(t.limit.Dir, t.pids())
		used.Bytes, used.Files = used.Bytes+gone.Bytes, used.Files+gone.Files
		if used.Bytes > allowed.Bytes || used.Files > allowed.Files {
			err = diskuse.ErrMore
		}
	}
	t.at = w.clock.Now()
	t.took, t.free = t.at.Sub(from), free
	t.room = diskuse.Usage{Bytes: allowed.Bytes - used.Bytes, Files: allowed.Files - used.Files}
	if errors.Is(err, diskuse.ErrMore) || errors.Is(err, diskuse.ErrDeep) {
		t.over = true
		t.kill(ctx, overDisk(t.limit, used, err))
	}
}

// overDisk says what was too much.
func overDisk(l diskLimit, used diskuse.Usage, err error) error {
	what := fmt.Sprintf("more than %d MB", l.MB)
	switch {
	case errors.Is(err, diskuse.ErrDeep):
		what = "folders nested too deeply"
	case used.Bytes <= l.MB<<20:
		what = fmt.Sprintf("more than %d files", l.allowed().Files)
	}
	return drover.Errorf(drover.Exhausted, "killed: its allocation's folder held %s (ephemeral_disk has size = %d)", what, l.MB)
}
