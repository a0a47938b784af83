package evalbroker

import "github.com/drover-project/drover/internal/minheap"

func newHeap(before func(a, b *item) bool) *minheap.Heap[*item] {
	return minheap.New(before, func(it *item, i int) { it.index = i })
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

func earlier(a, b *item) bool { return a.deadline.Before(b.deadline) }

func (b *Broker) pushReady(it *item) {
	it.state = ready
	h := b.ready[it.queue]
	if h == nil {
		h = newHeap(before)
		b.ready[it.queue] = h
	}
	h.Push(it)
}

func (b *Broker) pushDeadline(it *item, s state) {
	it.state = s
	b.deadlines.Push(it)
}

// unlink takes it out of the heap that holds it.
func (b *Broker) unlink(it *item) {
	switch it.state {
	case ready:
		b.ready[it.queue].Remove(it.index)
	case delayed, nacked, outstanding:
		b.deadlines.Remove(it.index)
	case pending, submitting: // in none
	}
}
