package server

import "github.com/drover-project/drover/internal/node/supervisor/wire"

const waitingNotices = 8 // for one hearer; more are dropped

// notice tells everybody who waits for the task something about one of its streams. What still goes on is told to those
// who come later, too.
func (t *task) notice(stream, text string, goesOn bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	text = stream + ": " + text
	if goesOn {
		if t.losing == nil {
			t.losing = map[string]string{}
		}
		t.losing[stream] = text
	} else {
		delete(t.losing, stream)
	}
	for c := range t.hearers {
		select {
		case c <- text:
		default:
		}
	}
}

// hear returns a channel of notices, and what ends it.
func (t *task) hear() (notices <-chan string, end func()) {
	c := make(chan string, waitingNotices)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.hearers == nil {
		t.hearers = map[chan string]bool{}
	}
	t.hearers[c] = true
	for _, text := range t.losing {
		c <- text // of two streams: there is room
	}
	return c, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.hearers, c)
	}
}

func (c *conn) waitTask(channel uint32, w *waiter, withNotices bool) {
	defer c.remove(channel)
	t, err := c.s.mainTask()
	if err != nil {
		c.fail(channel, err)
		return
	}
	var notices <-chan string
	if withNotices {
		heard, end := t.hear()
		defer end()
		notices = heard
	}
	for {
		select {
		case text := <-notices:
			_ = c.write(wire.Frame(wire.KindNotice, 0, channel, []byte(text)))
			continue
		case <-t.done:
			var e wire.Encoder
			e.Receipt(t.receipt)
			c.reply(channel, e.B)
		case <-w.stop:
		}
		return
	}
}
