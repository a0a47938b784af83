package federation

import (
	"slices"
	"sync"
)

// mostTold is how many answers are remembered: followers ask with the index of their last one.
const mostTold = 8

// Told remembers which tokens there were in the last answers. So a follower that had one of them is told which of them went,
// instead of all that there are: thousands of them would be repeated whenever one changes. The zero value is ready.
type Told struct {
	mu    sync.Mutex // guards what follows
	epoch string     // of the answers
	index []uint64   // of each, the newest last
	keys  [][]string // that it, and those before it, told
}

// Shrink leaves out of an answer what the asker knows.
func (t *Told) Shrink(ask Ask, o *Objects) {
	if o.Access == nil || o.Epoch == "" {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.epoch != o.Epoch {
		t.epoch, t.index, t.keys = o.Epoch, nil, nil
	}
	var before []string
	at := -1
	if ask.Epoch == o.Epoch && ask.After <= o.Index {
		if at = slices.Index(t.index, ask.After); at >= 0 {
			before = t.keys[at]
		}
	}
	set := &o.Access.Tokens
	keys := set.Keys
	switch {
	case set.Same && at < 0:
		return // what it has this server did not tell it
	case set.Same:
		keys = before
	case at >= 0 && ask.Differences:
		set.Keys, set.Gone, set.Differs = nil, missing(before, keys), true
	}
	if slices.Contains(t.index, o.Index) {
		return
	}
	t.index, t.keys = append(t.index, o.Index), append(t.keys, keys)
	if len(t.index) > mostTold {
		t.index, t.keys = t.index[1:], t.keys[1:]
	}
}

// missing are those of a that are not in b.
func missing(a, b []string) (out []string) {
	there := make(map[string]bool, len(b))
	for _, key := range b {
		there[key] = true
	}
	for _, key := range a {
		if !there[key] {
			out = append(out, key)
		}
	}
	return out
}
