package rank

// levels bounds how many parts a node's own score has: fit, anti-affinity, penalty, affinity, devices.
const levels = 6

// bucket holds the entries with equal spread values. Entries are ordered apart by the number of their score's parts,
// because the mean after adding the bucket's boost keeps the order only among those with equally many.
type bucket struct {
	heaps  [levels][]int32 // of entries, best first
	values []int32         // by property
	boost  float64
	full   bool // distinct_property forbids it
}

// better orders entries by score; their order decides between equal ones.
func (b *Board) better(x, y int32) bool {
	ex, ey := &b.entries[x], &b.entries[y]
	if ex.sum != ey.sum {
		return ex.sum > ey.sum
	}
	return ex.order < ey.order
}

// heapify orders a heap that was filled by appending.
func (b *Board) heapify(h []int32) {
	for i := len(h)/2 - 1; i >= 0; i-- {
		b.down(h, i)
	}
	for i, e := range h {
		b.entries[e].pos = int32(i)
	}
}

// remove takes an entry out of its heap, wherever it stands. Its place is filled with the last entry, which may have to
// go either way. An entry that is in no heap is left alone.
func (b *Board) remove(e int32) {
	en := &b.entries[e]
	if en.pos < 0 {
		return
	}
	slot := &b.buckets[en.bucket].heaps[en.parts]
	h, i, last := *slot, int(en.pos), len(*slot)-1
	en.pos = -1
	if i != last {
		h[i] = h[last]
		b.entries[h[i]].pos = int32(i)
	}
	*slot = h[:last]
	if i != last {
		b.down(h[:last], i)
		b.up(h[:last], i)
	}
}

// up moves the entry at i towards the top while it is better than the one above it.
func (b *Board) up(h []int32, i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !b.better(h[i], h[parent]) {
			return
		}
		b.swap(h, i, parent)
		i = parent
	}
}

// down moves the entry at i away from the top while one below it is better.
func (b *Board) down(h []int32, i int) {
	for {
		best := 2*i + 1
		if best >= len(h) {
			return
		}
		if right := best + 1; right < len(h) && b.better(h[right], h[best]) {
			best = right
		}
		if !b.better(h[best], h[i]) {
			return
		}
		b.swap(h, i, best)
		i = best
	}
}

// swap exchanges two entries and keeps their positions, which remove needs.
func (b *Board) swap(h []int32, i, j int) {
	h[i], h[j] = h[j], h[i]
	b.entries[h[i]].pos, b.entries[h[j]].pos = int32(i), int32(j)
}
