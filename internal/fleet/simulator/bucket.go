package simulator

import "github.com/drover-project/drover"

// buckets index nodes with room by their free cpu, in steps of 250 MHz, so that the fullest that fits is found fast.
type buckets struct{ list [1024][]*node }

const step = 250

// move puts the node where its room belongs; those that take no work are in none.
func (b *buckets) move(n *node) {
	b.drop(n)
	if !n.up || n.draining || n.half || n.free.CPU <= 0 {
		return
	}
	k := min(int(n.free.CPU/step), len(b.list)-1)
	n.bucket, n.at = k, len(b.list[k])
	b.list[k] = append(b.list[k], n)
}

// drop removes the node from its bucket, if it is in one. The last node of the bucket takes its place.
func (b *buckets) drop(n *node) {
	if n.bucket < 0 {
		return
	}
	l := b.list[n.bucket]
	last := l[len(l)-1]
	l[n.at] = last
	last.at = n.at
	l[len(l)-1] = nil
	b.list[n.bucket] = l[:len(l)-1]
	n.bucket = -1
}

// best returns a node with little room that the work fits into; nodes with work before empty ones of equal room.
func (b *buckets) best(each drover.Capacity) *node {
	for k := int(each.CPU / step); k < len(b.list); k++ {
		var empty *node
		for i, n := range b.list[k] {
			// Looking at a few nodes of each bucket bounds the time; a better place in the rest is not worth it.
			if i == 16 {
				break
			}
			if ok, _ := each.Fits(n.free); !ok {
				continue
			}
			if len(n.tasks) > 0 {
				return n
			}
			empty = n
		}
		if empty != nil {
			return empty
		}
	}
	return nil
}
