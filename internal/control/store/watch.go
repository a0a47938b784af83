package store

import (
	"sync"
)

type watchKey struct{ table, key string }

// watches hands out channels that the next commit touching their row closes.
type watches struct {
	mu    sync.Mutex
	chans map[watchKey]chan struct{} // guarded by mu
}

// Watch returns a channel that is closed by the next commit that touches the row; key "" means the whole table. The
// key of a job is tables.JobKey, else it is the id or name. Take the channel first and read the Snapshot after, or a change
// in between is missed. An abandoned channel costs a map entry until the row changes.
func (s *Store) Watch(table, key string) <-chan struct{} {
	w := &s.watches
	w.mu.Lock()
	defer w.mu.Unlock()
	k := watchKey{table, key}
	c := w.chans[k]
	if c == nil {
		c = make(chan struct{})
		w.chans[k] = c
	}
	return c
}

// WatchAny is Watch on everything: the next commit closes it.
func (s *Store) WatchAny() <-chan struct{} { return s.Watch("", "") }

func (w *watches) wake(touched map[watchKey]struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.close(watchKey{})
	for k := range touched {
		w.close(k)
	}
}

func (w *watches) wakeAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for k := range w.chans {
		w.close(k)
	}
}

func (w *watches) close(k watchKey) {
	if c := w.chans[k]; c != nil {
		close(c)
		delete(w.chans, k)
	}
}
