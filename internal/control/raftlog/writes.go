package raftlog

import (
	"sync"
	"time"
)

// remembered is how many writes of the log are remembered.
const remembered = 128

// Writes are the newest writes of the log to its disk, which are safe when they return.
type Writes struct {
	Count       int
	Mean, Worst time.Duration
}

// writes remembers how long the newest ones took. The zero value is ready.
type writes struct {
	mu   sync.Mutex // guards what follows
	took [remembered]time.Duration
	n    int // that there were
}

func (w *writes) add(took time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.took[w.n%remembered] = took
	w.n++
}

func (w *writes) sum() (out Writes) {
	w.mu.Lock()
	defer w.mu.Unlock()
	out.Count = min(w.n, remembered)
	for _, took := range w.took[:out.Count] {
		out.Mean += took
		out.Worst = max(out.Worst, took)
	}
	if out.Count > 0 {
		out.Mean /= time.Duration(out.Count)
	}
	return out
}

// Writes returns how long the newest writes of the log took. There are none of a log in memory.
func (l *Log) Writes() Writes { return l.health.writes.sum() }
