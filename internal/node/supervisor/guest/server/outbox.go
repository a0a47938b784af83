package server

import (
	"sync"

	"github.com/drover-project/drover/internal/node/supervisor/wire"
)

// outbox counts what may be sent to the agent.
type outbox struct {
	mu          sync.Mutex
	cond        *sync.Cond
	sent, acked int64 // guarded by mu
	closed      bool  // guarded by mu
}

func (o *outbox) init() { o.cond = sync.NewCond(&o.mu) }

func (o *outbox) ack(offset int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.acked = max(o.acked, min(offset, o.sent))
	o.cond.Broadcast()
}

func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.cond.Broadcast()
}

// reserve waits until something may be sent and takes up to n bytes of it; 0 when nobody wants it any more.
func (o *outbox) reserve(n int) (offset int64, granted int) {
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
