package channel

import (
	"io"
	"sync"

	"github.com/drover-project/drover/internal/node/supervisor/wire"
)

// Inbox is the receiving end of a data stream from the agent. It never holds more than the window.
type Inbox struct {
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

// NewInbox returns an empty inbox, which calls ack with the offset up to which its bytes were used.
func NewInbox(ack func(int64)) *Inbox {
	b := &Inbox{ack: ack}
	b.cond = sync.NewCond(&b.mu)
	return b
}

// Data takes a data frame's payload. An agent that sends more than the window is not served any more.
func (b *Inbox) Data(payload []byte) {
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

// End says that nothing more comes.
func (b *Inbox) End() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.eof = true
	b.cond.Broadcast()
}

// Close says that the channel is gone.
func (b *Inbox) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.cond.Broadcast()
}

// Take returns the next bytes, false at the end. What the agent sent before it went away is still delivered.
func (b *Inbox) Take() ([]byte, bool) {
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

// Done acknowledges bytes that were used.
func (b *Inbox) Done(n int) {
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

// Ended reports whether the agent said that nothing more comes.
func (b *Inbox) Ended() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.eof
}

// Read makes the inbox a reader. An agent that went away in the middle is an unexpected end.
func (b *Inbox) Read(p []byte) (int, error) {
	if len(b.rest) == 0 {
		next, ok := b.Take()
		if !ok {
			if b.Ended() {
				return 0, io.EOF
			}
			return 0, io.ErrUnexpectedEOF
		}
		b.rest = next
	}
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	b.Done(n)
	return n, nil
}
