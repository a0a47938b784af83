package minheap_test

import (
	"container/heap"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover/internal/minheap"
)

type item struct{ key, id, index int }

// shim is what each heap of the tree once had.
type shim []*item

func (s shim) Len() int           { return len(s) }
func (s shim) Less(i, j int) bool { return s[i].key < s[j].key }
func (s shim) Swap(i, j int) {
	s[i], s[j] = s[j], s[i]
	s[i].index, s[j].index = i, j
}

func (s *shim) Push(x any) {
	it := x.(*item)
	it.index = len(*s)
	*s = append(*s, it)
}

func (s *shim) Pop() any {
	last := len(*s) - 1
	it := (*s)[last]
	(*s)[last] = nil
	*s = (*s)[:last]
	return it
}

func newHeap() *minheap.Heap[*item] {
	return minheap.New(func(a, b *item) bool { return a.key < b.key }, func(x *item, i int) { x.index = i })
}

// Simulations replay: equals come in container/heap's order.
func TestTheSameAsContainerHeap(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		ours, theirs := newHeap(), &shim{}
		var a, b []*item // those that are in the heaps, in the same order
		drop := func(x, y *item) {
			if x.id != y.id {
				t.Fatalf("got %d, container/heap %d", x.id, y.id)
			}
			for i := range a {
				if a[i] == x {
					a, b = append(a[:i:i], a[i+1:]...), append(b[:i:i], b[i+1:]...)
					return
				}
			}
		}
		key := rapid.IntRange(0, 9)
		for id := range rapid.IntRange(1, 60).Draw(t, "steps") {
			step := rapid.IntRange(0, 4).Draw(t, "step")
			if len(a) == 0 || step == 0 {
				k := key.Draw(t, "key")
				a, b = append(a, &item{k, id, -1}), append(b, &item{k, id, -1})
				ours.Push(a[len(a)-1])
				heap.Push(theirs, b[len(b)-1])
				continue
			}
			i := rapid.IntRange(0, len(a)-1).Draw(t, "which")
			switch step {
			case 1:
				drop(ours.Pop(), heap.Pop(theirs).(*item))
			case 2:
				drop(ours.Remove(a[i].index), heap.Remove(theirs, b[i].index).(*item))
			case 3:
				a[i].key = key.Draw(t, "key")
				b[i].key = a[i].key
				ours.Fix(a[i].index)
				heap.Fix(theirs, b[i].index)
			case 4:
				for i := range a {
					a[i].key = key.Draw(t, "key")
					b[i].key = a[i].key
				}
				ours.FixAll()
				heap.Init(theirs)
			}
			if ours.Len() != theirs.Len() || ours.Len() > 0 && ours.Top().id != (*theirs)[0].id {
				t.Fatal("the tops differ")
			}
			for i := range a {
				if a[i].index != b[i].index {
					t.Fatalf("%d stands at %d, container/heap has it at %d", a[i].id, a[i].index, b[i].index)
				}
			}
		}
	})
}

func TestWithoutIndexes(t *testing.T) {
	t.Parallel()
	h := minheap.New(func(a, b int) bool { return a < b }, nil)
	for _, x := range []int{3, 1, 2} {
		h.Push(x)
	}
	require.Equal(t, []int{1, 2, 3}, []int{h.Pop(), h.Pop(), h.Pop()})
	h.Push(1)
	h.Clear()
	require.Zero(t, h.Len())
}

func BenchmarkMove(b *testing.B) {
	const n = 10_000
	b.Run("minheap", func(b *testing.B) {
		h, items := newHeap(), make([]*item, n)
		for i := range items {
			items[i] = &item{key: i}
			h.Push(items[i])
		}
		for i := 0; b.Loop(); i++ {
			x := items[i%n]
			x.key += n
			h.Fix(x.index)
			h.Push(h.Pop())
		}
	})
	b.Run("container", func(b *testing.B) {
		h, items := &shim{}, make([]*item, n)
		for i := range items {
			items[i] = &item{key: i}
			heap.Push(h, items[i])
		}
		for i := 0; b.Loop(); i++ {
			x := items[i%n]
			x.key += n
			heap.Fix(h, x.index)
			heap.Push(h, heap.Pop(h))
		}
	})
}
