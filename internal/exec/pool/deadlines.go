package pool

import (
	"time"

	"github.com/drover-project/drover/internal/minheap"
)

// Deadlines keeps at most one deadline for each id. The zero value is empty.
type Deadlines struct {
	heap *minheap.Heap[*deadline]
	byID map[string]*deadline
}

type deadline struct {
	id    string
	at    time.Time
	place int // in the heap
}

// Set sets or moves the id's deadline. It reports whether this is now the earliest of all.
func (d *Deadlines) Set(id string, at time.Time) (earliest bool) {
	if d.byID == nil {
		d.heap = minheap.New(
			func(a, b *deadline) bool { return a.at.Before(b.at) }, func(x *deadline, i int) { x.place = i },
		)
		d.byID = map[string]*deadline{}
	}
	item, ok := d.byID[id]
	if ok {
		item.at = at
		d.heap.Fix(item.place)
	} else {
		item = &deadline{id: id, at: at}
		d.byID[id] = item
		d.heap.Push(item)
	}
	return item.place == 0
}

// Clear removes the id's deadline.
func (d *Deadlines) Clear(id string) {
	if item, ok := d.byID[id]; ok {
		d.heap.Remove(item.place)
		delete(d.byID, id)
	}
}

// Next returns the earliest deadline.
func (d *Deadlines) Next() (at time.Time, ok bool) {
	if len(d.byID) == 0 {
		return time.Time{}, false
	}
	return d.heap.Top().at, true
}

// Due takes out and returns the ids whose deadline is now or earlier, in order.
func (d *Deadlines) Due(now time.Time) (ids []string) {
	for len(d.byID) > 0 && !d.heap.Top().at.After(now) {
		item := d.heap.Pop()
		delete(d.byID, item.id)
		ids = append(ids, item.id)
	}
	return ids
}
