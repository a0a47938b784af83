package server

import (
	"io"
	"sync"

	"github.com/drover-project/drover/internal/node/supervisor/wire"
)

// inbox is the receiving end of a data stream from the agent. It never holds more than the window.
type inbox struct {
	ack func(offset int64)

	mu       sync.Mutex
	cond     *sync.Cond
	queue    [][]byte // guarded by mu
	size     int      // bytes in queue; guarded by mu
	consumed int64    // guarded by mu
	told     int64    // the last acknowledged offset; guarded by mu
	eof      bool     // the agent said so; guarded by mu
	closed   bool     // the channel is gone; guarded by mu
	rest     []byte   // of Read; owned by the reader
}

func newInbox(ack func(int64)) *inbox {
	b := &inbox{ack: ack}
	b.cond = sync.NewCond(&b.mu)
	return b
}

func (b *inbox) data(payload []byte) {
	_, p, err := wire.ParseData(payload)
	b.mu.Lock()
	defer b.mu.Unlock()
	if err != nil || b.closed || b.size+len(p) > wire.Window+wire.DataSize {
		b.closed = true // an agent that ignores the window is not served
		b.cond.Broadcast()
		return
	}
	b.queue = append(b.queue, append([]byte(nil), p...))
	b.size += len(p)
	b.cond.Broadcast()
}

func (b *inbox) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.eof = true
	b.cond.Broadcast()
}

func (b *inbox) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.cond.Broadcast()
}

// take returns the next bytes, false at the end. What the agent sent before it went away is still delivered.
func (b *inbox) take() ([]byte, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.queue) == 0 {
		if b.eof || b.closed {
			return nil, false
		}
		b.cond.Wait()
	}
	p := b.queue[0]
	b.queue = b.queue[1:]
	b.size -= len(p)
	return p, true
}

// done acknowledges bytes that were used.
func (b *inbox) done(n int) {
	b.mu.Lock()
	b.consumed += int64(n)
	offset := b.consumed
	tell := offset-b.told >= wire.Window/4 || len(b.queue) == 0
	if tell {
		b.told = offset
	}
	b.mu.Unlock()
	if tell {
		b.ack(offset)
	}
}

// ended reports whether the agent said that nothing more comes.
func (b *inbox) ended() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.eof
}

// Read makes the inbox a reader. An agent that went away in the middle is an unexpected end.
func (b *inbox) Read(p []byte) (int, error) {
	if len(b.rest) == 0 {
		next, ok := b.take()
		if !ok {
			if b.ended() {
				return 0, io.EOF
			}
			return 0, io.ErrUnexpectedEOF
		}
		b.rest = next
	}
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	b.done(n)
	return n, nil
}
