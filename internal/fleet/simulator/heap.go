package simulator

// event is something that happens at a time; seq orders those of the same time.
type event struct {
	at   int64 // ns since the start
	seq  int64
	do   func()
	task int32 // of the end of a task, which has no do
	run  int32
}

// events is a binary heap of what is to come. Events are kept by value, as a run has millions of them.
type events struct {
	list []event
	seq  int64
}

// less orders by time, then by the order of planning, so that a run never depends on the shape of the heap.
func (h *events) less(i, j int) bool {
	a, b := &h.list[i], &h.list[j]
	return a.at < b.at || a.at == b.at && a.seq < b.seq
}

// push adds an event and gives it the next sequence number.
func (h *events) push(e event) {
	h.seq++
	e.seq = h.seq
	h.list = append(h.list, e)
	for i := len(h.list) - 1; i > 0; {
		up := (i - 1) / 2
		if !h.less(i, up) {
			return
		}
		h.list[i], h.list[up] = h.list[up], h.list[i]
		i = up
	}
}

// pop removes the earliest event; the heap must not be empty. The freed place is cleared, as it would keep a closure
// alive.
func (h *events) pop() event {
	top := h.list[0]
	n := len(h.list) - 1
	h.list[0] = h.list[n]
	h.list[n] = event{}
	h.list = h.list[:n]
	for i := 0; ; {
		low := 2*i + 1
		if low >= n {
			return top
		}
		if low+1 < n && h.less(low+1, low) {
			low++
		}
		if !h.less(low, i) {
			return top
		}
		h.list[i], h.list[low] = h.list[low], h.list[i]
		i = low
	}
}
