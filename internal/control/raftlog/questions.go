package raftlog

import (
	"sync"
	"time"

	"github.com/drover-project/drover/internal/clock"
)

// lastAnswers is how long Close waits for what was asked of raft: what is in its queues when it stops it never answers.
const lastAnswers = time.Second

// questions counts what raft has not answered. The zero value is ready.
type questions struct {
	mu    sync.Mutex // guards what follows
	open  int
	ended bool
	none  chan struct{} // closed when it ended and none is open
}

// begin counts one; false if there are to be no more.
func (q *questions) begin() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.ended {
		q.open++
	}
	return !q.ended
}

func (q *questions) answered() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.open--; q.open == 0 && q.ended {
		close(q.none)
	}
}

// end lets nobody ask any more, and waits a moment for the answers that are due. It is called once.
func (q *questions) end(c clock.Clock) {
	q.mu.Lock()
	q.ended, q.none = true, make(chan struct{})
	if q.open == 0 {
		close(q.none)
	}
	q.mu.Unlock()
	t := c.NewTimer(lastAnswers)
	defer t.Stop()
	select {
	case <-q.none:
	case <-t.C():
	}
}
