package runner

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
