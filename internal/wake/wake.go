package wake

import "sync"

// Signal is a wake-up for one receiver. Make it by NewSignal; copies of it are the same signal.
type Signal struct{ c chan struct{} }

// NewSignal returns a signal that nobody sent yet.
func NewSignal() Signal { return Signal{make(chan struct{}, 1)} }

// Send wakes the receiver, now or when it receives next. It never blocks. Sending again before the receiver has received
// changes nothing.
func (s Signal) Send() {
	select {
	case s.c <- struct{}{}:
	default:
	}
}

// C returns the channel to receive from; each receive takes the signal away. If several goroutines receive, each signal
// wakes one of them.
func (s Signal) C() <-chan struct{} { return s.c }

// Broadcast is a wake-up for everybody who waits. The zero value is ready. It must not be copied.
type Broadcast struct {
	mu sync.Mutex
	c  chan struct{} // guarded by mu: closed by the next Send; nil if nobody asked since the last one
}

// C returns a channel that the next Send closes. A waiter asks for the channel before it looks at the state, so that no
// change in between is lost:
//
//	for {
//		changed := b.C()
//		if ready() {
//			return
//		}
//		<-changed
//	}
func (b *Broadcast) C() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.c == nil {
		b.c = make(chan struct{})
	}
	return b.c
}

// Send wakes all who wait. It costs nothing but a lock if nobody does.
func (b *Broadcast) Send() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.c != nil {
		close(b.c)
		b.c = nil
	}
}
