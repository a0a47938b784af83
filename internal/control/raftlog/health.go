package raftlog

import (
	"sync"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/wake"
)

// health knows why writes must be refused.
type health struct {
	dir     string // "" = in memory
	minFree uint64

	tooLarge wake.Signal // the log has grown beyond maxBytes since it was last told
	maxBytes int64

	writes writes

	closing  chan struct{} // closed by shut
	shutOnce sync.Once

	mu     sync.Mutex
	lost   error // guarded by mu: what the state lacks of the log; nil if it has all
	failed error // guarded by mu: of the last write to disk
	bytes  int64 // guarded by mu: of entries since tooLarge was told
}

func newHealth() *health {
	return &health{closing: make(chan struct{}), tooLarge: wake.NewSignal()}
}

// writable returns nil, or why nothing is taken now.
func (h *health) writable() error {
	h.mu.Lock()
	lost, failed := h.lost, h.failed
	h.mu.Unlock()
	if lost != nil {
		return drover.Errorf(drover.Unavailable, "writes are refused: %w", lost)
	}
	if err := h.space(); err != nil {
		return err
	}
	if failed != nil {
		return drover.Errorf(drover.Unavailable, "writes are refused: the raft log cannot be written: %w", failed)
	}
	return nil
}

// space returns an error if the disk is (nearly) full.
func (h *health) space() error {
	if h.dir == "" {
		return nil
	}
	var s unix.Statfs_t
	if err := unix.Statfs(h.dir, &s); err != nil {
		return drover.Errorf(drover.Unavailable, "writes are refused: reading the free space of %s: %w", h.dir, err)
	}
	if free := s.Bavail * uint64(s.Bsize); free < h.minFree {
		return drover.Errorf(drover.Exhausted, "writes are refused: no space left under the raft log: %s has %d bytes free, %d are needed",
			h.dir, free, h.minFree)
	}
	return nil
}

// wrote notes how a write to disk went.
func (h *health) wrote(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failed = err
}

// grew notes that so many bytes of entries were stored.
func (h *health) grew(n int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.bytes += n; h.bytes <= h.maxBytes || h.maxBytes == 0 {
		return
	}
	h.bytes = 0
	h.tooLarge.Send()
}

// lose notes what the state lacks of the log. The first such reason is kept.
func (h *health) lose(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lost == nil {
		h.lost = err
	}
}

// whole notes that the state lacks nothing, as it was replaced.
func (h *health) whole() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lost = nil
}

// lacking returns what the state lacks of the log, nil if it has all.
func (h *health) lacking() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lost
}

// shut ends what waits for the disk.
func (h *health) shut() { h.shutOnce.Do(func() { close(h.closing) }) }
