package channel

import (
	"sync"

	"github.com/drover-project/drover/internal/node/supervisor/wire"
)

// Outbox counts what may be sent to the agent.
type Outbox struct {
	mu          sync.Mutex
	cond        *sync.Cond
	sent, acked int64 // guarded by mu
	closed      bool  // guarded by mu
}

// NewOutbox returns an outbox that has sent nothing.
func NewOutbox() *Outbox {
	o := &Outbox{}
	o.cond = sync.NewCond(&o.mu)
	return o
}

// Ack takes an acknowledgement up to the offset.
func (o *Outbox) Ack(offset int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.acked = max(o.acked, min(offset, o.sent))
	o.cond.Broadcast()
}

// Close says that nobody wants anything any more.
func (o *Outbox) Close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.cond.Broadcast()
}

// Reserve waits until something may be sent and takes up to n bytes of it; 0 when nobody wants it any more.
func (o *Outbox) Reserve(n int) (offset int64, granted int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for !o.closed && o.sent-o.acked >= wire.Window {
		o.cond.Wait()
	}
	if o.closed {
		return 0, 0
	}
	offset = o.sent
	granted = min(n, int(wire.Window-(o.sent-o.acked)))
	o.sent += int64(granted)
	return offset, granted
}
