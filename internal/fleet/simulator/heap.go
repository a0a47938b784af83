package simulator

// event is something that happens at a time; seq orders those of the same time.
type event struct {
	at   int64 // ns since the start
	seq  int64
	do   func()
	task int32 // of the end of a task, which has no do
	run  int32
}

type events struct {
	list []event
	seq  int64
}

func (h *events) less(i, j int) bool {
	a, b := &h.list[i], &h.list[j]
	return a.at < b.at || a.at == b.at && a.seq < b.seq
}

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
