package pool

import (
	"container/heap"
	"time"
)

// Deadlines keeps at most one deadline for each id. The zero value is empty.
type Deadlines struct {
	heap deadlineHeap
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
		d.byID = map[string]*deadline{}
	}
	item, ok := d.byID[id]
	if ok {
		item.at = at
		heap.Fix(&d.heap, item.place)
	} else {
		item = &deadline{id: id, at: at}
		d.byID[id] = item
		heap.Push(&d.heap, item)
	}
	return item.place == 0
}

// Clear removes the id's deadline.
func (d *Deadlines) Clear(id string) {
	if item, ok := d.byID[id]; ok {
		heap.Remove(&d.heap, item.place)
		delete(d.byID, id)
	}
}

// Next returns the earliest deadline.
func (d *Deadlines) Next() (at time.Time, ok bool) {
	if len(d.heap) == 0 {
		return time.Time{}, false
	}
	return d.heap[0].at, true
}

// Due takes out and returns the ids whose deadline is now or earlier, in order.
func (d *Deadlines) Due(now time.Time) (ids []string) {
	for len(d.heap) > 0 && !d.heap[0].at.After(now) {
		item := heap.Pop(&d.heap).(*deadline) // only these go in
		delete(d.byID, item.id)
		ids = append(ids, item.id)
	}
	return ids
}

type deadlineHeap []*deadline

func (h deadlineHeap) Len() int           { return len(h) }
func (h deadlineHeap) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h deadlineHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

// Push serves container/heap.
func (h *deadlineHeap) Push(x any) {
	item := x.(*deadline) // only these go in
	item.place = len(*h)
	*h = append(*h, item)
}

// Pop serves container/heap.
func (h *deadlineHeap) Pop() any {
	last := len(*h) - 1
	item := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return item
}
