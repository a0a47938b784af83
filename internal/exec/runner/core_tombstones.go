package runner

// tombstones remember the newest runners that ended after they were handed out, each with its reason. Thus a late event
// brings none of them back, and who asks for one learns why it is gone. When they are full, the oldest one is overwritten.
type tombstones struct {
	capacity int
	reasons  map[string]error
	ring     []string
	next     int // to be overwritten, once the ring is full
}

func newTombstones(capacity int) tombstones {
	return tombstones{capacity: capacity, reasons: map[string]error{}}
}

func (t *tombstones) has(allocID string) bool { return t.reasons[allocID] != nil }

// add remembers a runner; the reason that was told first stays.
func (t *tombstones) add(allocID string, reason error) {
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
