package rank

// The buckets are kept in a heap as well, so that a spread over as many values as there are nodes costs no more than
// one over a few.

// ahead reports whether bucket x has the better best entry. Buckets without one come last.
func (b *Board) ahead(x, y int32) bool {
	if b.scores[x] != b.scores[y] {
		return b.scores[x] > b.scores[y]
	}
	tx, ty := b.tops[x], b.tops[y]
	return tx >= 0 && ty >= 0 && b.entries[tx].order < b.entries[ty].order
}

// requeue moves one bucket to where its score belongs.
func (b *Board) requeue(i int32) {
	at := int(b.place[i])
	for at > 0 && b.ahead(i, b.queue[(at-1)/2]) {
		b.enqueue(at, b.queue[(at-1)/2])
		at = (at - 1) / 2
	}
	b.enqueue(at, i)
	b.sink(at)
}

// sink moves the bucket at this place down until none below it is better.
func (b *Board) sink(at int) {
	i := b.queue[at]
	for {
		child := 2*at + 1
		if child >= len(b.queue) {
			break
		}
		if child+1 < len(b.queue) && b.ahead(b.queue[child+1], b.queue[child]) {
			child++
		}
		if !b.ahead(b.queue[child], i) {
			break
		}
		b.enqueue(at, b.queue[child])
		at = child
	}
	b.enqueue(at, i)
}

// enqueue writes bucket i to a place and remembers the place, so that requeue finds it without a search.
func (b *Board) enqueue(at int, i int32) {
	b.queue[at], b.place[i] = i, int32(at)
}

// requeueAll orders all buckets anew.
func (b *Board) requeueAll() {
	for at := len(b.queue)/2 - 1; at >= 0; at-- {
		b.sink(at)
	}
}
