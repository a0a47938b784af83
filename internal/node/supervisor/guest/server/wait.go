package server

import (
	"sync"

	"github.com/drover-project/drover/internal/node/supervisor/guest/channel"
	"github.com/drover-project/drover/internal/node/supervisor/wire"
)

// waiter is a channel that only waits.
type waiter struct {
	once sync.Once
	stop chan struct{}
}

// Frame ignores what nobody sends.
func (w *waiter) Frame(wire.Header, []byte) {}

// Gone ends the wait.
func (w *waiter) Gone(bool) { w.once.Do(func() { close(w.stop) }) }

// waitTask answers with the main task's receipt once it has ended; before that with notices, if they are wanted.
func (c *conn) waitTask(ch channel.Channel, w *waiter, withNotices bool) {
	defer c.Remove(ch.ID)
	t, err := c.s.mainTask()
	if err != nil {
		ch.Answer(nil, err)
		return
	}
	var notices <-chan string
	if withNotices {
		heard, end := t.Hear()
		defer end()
		notices = heard
	}
	for {
		select {
		case text := <-notices:
			_ = ch.Send(wire.KindNotice, []byte(text)) // run notices that the agent is gone
			continue
		case <-t.Done():
			var e wire.Encoder
			e.Receipt(t.Receipt())
			ch.Answer(e.B, nil)
		case <-w.stop:
		}
		return
	}
}
