package task

const waitingNotices = 8 // for one hearer; more are dropped

// notice tells everybody who waits for the task something about one of its streams. What still goes on is told to those
// who come later, too.
func (t *Task) notice(stream, text string, goesOn bool) {
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

// Hear returns a channel of notices, and what ends it.
func (t *Task) Hear() (notices <-chan string, end func()) {
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
