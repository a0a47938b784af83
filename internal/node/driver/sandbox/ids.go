package sandbox

import (
	"os"
	"sync"

	"github.com/drover-project/drover"
)

// Each sandbox has its own 65,536 host ids. So limits that the kernel counts by user (pipe buffers, inotify watches, pending signals) are
// not shared with a hostile neighbour. And no file of one sandbox could ever be opened by another.
const (
	idSize  = 1 << 16
	idFirst = 0x10000000 // above what people, systemd (0x80000…) and containers hand out
	idLast  = 0x60000000
	idSlots = (idLast - idFirst) / idSize
)

// idRanges says which slots of host ids are taken. It is kept in memory only: Attach holds those of sandboxes that live on.
type idRanges struct {
	mu   sync.Mutex
	next uint32
	used map[uint32]bool
}

// take returns a free slot; a freed one is used again as late as possible.
func (r *idRanges) take() (uint32, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for range idSlots {
		slot := r.next
		r.next = (r.next + 1) % idSlots
		if !r.used[slot] {
			r.used[slot] = true
			return slot, nil
		}
	}
	return 0, drover.Errorf(drover.Exhausted, "all %d user id ranges are in use", idSlots)
}

// hold marks a slot that an attached sandbox has.
func (r *idRanges) hold(slot uint32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.used[slot] = true
}

// release frees a slot. Nothing with its ids may be left running, or on a file system that others see.
func (r *idRanges) release(slot uint32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.used, slot)
}

// base is the host id of a slot's root.
func base(slot uint32) int { return idFirst + int(slot)*idSize }

func geteuid() int { return os.Geteuid() }
