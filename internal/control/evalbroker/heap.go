package evalbroker

import "container/heap"

// readyHeap orders by priority, then age.
type readyHeap []*item

func (h readyHeap) Len() int { return len(h) }
func (h readyHeap) Less(i, j int) bool {
	return before(h[i], h[j])
}

func (h readyHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *readyHeap) Push(x any) {
	it := x.(*item)
	it.index = len(*h)
	*h = append(*h, it)
}

func (h *readyHeap) Pop() any {
	old := *h
	last := len(old) - 1
	it := old[last]
	old[last] = nil
	*h = old[:last]
	return it
}

// before reports whether a is delivered before b.
func before(a, b *item) bool {
	switch {
	case a.eval.Priority != b.eval.Priority:
		return a.eval.Priority > b.eval.Priority
	case a.eval.CreateIndex != b.eval.CreateIndex:
		return a.eval.CreateIndex < b.eval.CreateIndex
	}
	return a.seq < b.seq
}

// deadlineHeap orders by deadline.
type deadlineHeap []*item

func (h deadlineHeap) Len() int           { return len(h) }
func (h deadlineHeap) Less(i, j int) bool { return h[i].deadline.Before(h[j].deadline) }
func (h deadlineHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *deadlineHeap) Push(x any) {
	it := x.(*item)
	it.index = len(*h)
	*h = append(*h, it)
}

func (h *deadlineHeap) Pop() any {
	old := *h
	last := len(old) - 1
	it := old[last]
	old[last] = nil
	*h = old[:last]
	return it
}

func (b *Broker) pushReady(it *item) {
	it.state = ready
	h := b.ready[it.queue]
	if h == nil {
		h = &readyHeap{}
		b.ready[it.queue] = h
	}
	heap.Push(h, it)
}

func (b *Broker) pushDeadline(it *item, s state) {
	it.state = s
	heap.Push(&b.deadlines, it)
}

// unlink takes it out of the heap that holds it.
func (b *Broker) unlink(it *item) {
	switch it.state {
	case ready:
		heap.Remove(b.ready[it.queue], it.index)
	case delayed, nacked, outstanding:
		heap.Remove(&b.deadlines, it.index)
	case pending: // in none
	}
}
