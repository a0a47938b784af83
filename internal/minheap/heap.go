package minheap

// Heap keeps the value that is before all others at its top. Make it by New.
type Heap[T any] struct {
	items  []T
	before func(a, b T) bool
	moved  func(x T, index int)
}

// New returns an empty heap in the order of before. moved, which may be nil, is told where each value came to stand, for
// Fix and Remove.
func New[T any](before func(a, b T) bool, moved func(x T, index int)) *Heap[T] {
	return &Heap[T]{before: before, moved: moved}
}

// Len returns the number of values.
func (h *Heap[T]) Len() int { return len(h.items) }

// Top returns the first value. The heap must not be empty.
func (h *Heap[T]) Top() T { return h.items[0] }

// Clear drops all values.
func (h *Heap[T]) Clear() { h.items = nil }

// Push adds a value.
func (h *Heap[T]) Push(x T) {
	h.items = append(h.items, x)
	h.up(len(h.items) - 1)
}

// Pop takes the first value out. The heap must not be empty.
func (h *Heap[T]) Pop() T { return h.Remove(0) }

// Remove takes the value at an index out.
func (h *Heap[T]) Remove(i int) T {
	last := len(h.items) - 1
	x := h.items[i]
	h.items[i] = h.items[last]
	var none T
	h.items[last] = none
	h.items = h.items[:last]
	if i != last {
		h.Fix(i)
	}
	return x
}

// Fix moves the value at an index to where it belongs after it changed.
func (h *Heap[T]) Fix(i int) {
	if !h.down(i) {
		h.up(i)
	}
}

// FixAll orders the heap after any of its values changed.
func (h *Heap[T]) FixAll() {
	for i := len(h.items)/2 - 1; i >= 0; i-- {
		h.down(i)
	}
}

func (h *Heap[T]) put(x T, i int) {
	h.items[i] = x
	if h.moved != nil {
		h.moved(x, i)
	}
}

func (h *Heap[T]) up(i int) {
	x := h.items[i]
	for i > 0 {
		parent := (i - 1) / 2
		if !h.before(x, h.items[parent]) {
			break
		}
		h.put(h.items[parent], i)
		i = parent
	}
	h.put(x, i)
}

// down reports whether the value moved.
func (h *Heap[T]) down(from int) bool {
	i, n, x := from, len(h.items), h.items[from]
	for {
		child := 2*i + 1
		if child >= n {
			break
		}
		if right := child + 1; right < n && h.before(h.items[right], h.items[child]) {
			child = right
		}
		if !h.before(h.items[child], x) {
			break
		}
		h.put(h.items[child], i)
		i = child
	}
	if i > from {
		h.put(x, i)
	}
	return i > from
}
