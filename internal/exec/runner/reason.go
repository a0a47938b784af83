package runner

import (
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/exec/pool"
)

func endReason(alloc *drover.Allocation) error {
	switch {
	case oomKilled(alloc):
		return drover.Errorf(drover.Gone, "%w", pool.ErrOOM)
	case alloc.ClientStatus == drover.AllocClientLost: // which is then also stopped, to be replaced
		return drover.Errorf(drover.Gone, "the node of the runner was lost")
	case alloc.ServerTerminal():
		return drover.Errorf(drover.Gone, "%w", pool.ErrStopped)
	case alloc.ClientStatus == drover.AllocClientFailed:
		return drover.Errorf(drover.Gone, "the allocation ended: %s: %s", alloc.ClientStatus, failure(alloc))
	}
	return drover.Errorf(drover.Gone, "the allocation ended: %s", alloc.ClientStatus)
}

func oomKilled(alloc *drover.Allocation) bool {
	for _, state := range alloc.TaskStates {
		for _, e := range state.Events {
			if e.Details["oom_killed"] == "true" {
				return true
			}
		}
	}
	return false
}

// tombs remember the runners that ended, the last ones only.
type tombs struct {
	capacity int
	reasons  map[string]error
	ring     []string
	next     int // to be overwritten, once the ring is full
}

func newTombs(capacity int) tombs { return tombs{capacity: capacity, reasons: map[string]error{}} }

func (t *tombs) has(allocID string) bool { return t.reasons[allocID] != nil }

func (t *tombs) add(allocID string, reason error) {
	if t.has(allocID) {
		return
	}
	t.reasons[allocID] = reason
	if len(t.ring) < t.capacity {
		t.ring = append(t.ring, allocID)
		return
	}
	delete(t.reasons, t.ring[t.next])
	t.ring[t.next] = allocID
	t.next = (t.next + 1) % len(t.ring)
}

func unixNano(ns int64) time.Time {
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, ns).UTC()
}
