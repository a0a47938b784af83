package socket

import (
	"context"
	"sync/atomic"

	"github.com/drover-project/drover/internal/wake"
)

// Bounds of what an Inbox holds.
const (
	maxItems = 64
	maxBytes = 1 << 20
)

// Inbox holds what was received until it is taken: a few items, and about 1 MiB; a larger one only alone. One goroutine
// puts, one takes.
type Inbox[T any] struct {
	items chan received[T]
	bytes atomic.Int64 // of items
	taken wake.Signal  // something was taken
}

// received is an item with its size, which Take subtracts again.
type received[T any] struct {
	item T
	size int
}

// NewInbox returns an empty one.
func NewInbox[T any]() *Inbox[T] {
	return &Inbox[T]{items: make(chan received[T], maxItems), taken: wake.NewSignal()}
}

// Put adds an item that was received by c, of size bytes, when there is room. It reports false when ctx ended before that.
func (i *Inbox[T]) Put(ctx context.Context, c *Conn, item T, size int) bool {
	if i.offer(item, size) {
		return true
	}
	c.waiting.Store(true)
	defer c.waiting.Store(false)
	for !i.offer(item, size) {
		select {
		case <-i.taken.C():
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// offer adds the item if there is room, and never blocks. An empty inbox takes an item of any size, otherwise one
// over the bound could never pass.
func (i *Inbox[T]) offer(item T, size int) bool {
	if held := i.bytes.Load(); held > 0 && held+int64(size) > maxBytes {
		return false
	}
	i.bytes.Add(int64(size))
	select {
	case i.items <- received[T]{item, size}:
		return true
	default:
		i.bytes.Add(-int64(size))
		return false
	}
}

// Take waits for an item. It reports false when ctx ended.
func (i *Inbox[T]) Take(ctx context.Context) (item T, ok bool) {
	select {
	case r := <-i.items:
		i.bytes.Add(-int64(r.size))
		i.taken.Send()
		return r.item, true
	case <-ctx.Done():
		return item, false
	}
}
