package executor

import (
	"context"
	"net/url"
	"sync"
)

// The bounds of telling webhooks at once; the others wait. A receiver that does not answer holds its places for long:
// the bounds for each environment, and for each host of it, leave room for those of others.
const (
	maxNotifying     = 1_000
	maxNotifyingEnv  = 250
	maxNotifyingHost = 50
)

// turns lets webhooks be told in turn.
type turns struct {
	all chan struct{} // holds an element for each that is being told

	mu    sync.Mutex // guards what follows
	parts map[string]*part
}

// part is what webhooks of one environment share, or those of one host of it.
type part struct {
	places chan struct{} // holds an element for each that has a place
	users  int           // with a place, or waiting; guarded by turns.mu
}

func newTurns() turns {
	return turns{all: make(chan struct{}, maxNotifying), parts: map[string]*part{}}
}

// take waits for the turn of a webhook; leave ends it. It reports false when ctx ended before. Places are taken from
// the narrowest bound to the widest, so that who waits holds none that another environment needs.
func (t *turns) take(ctx context.Context, address, environment string) (leave func(), ok bool) {
	host := address
	if u, err := url.Parse(address); err == nil {
		host = u.Hostname()
	}
	var taken []func()
	leave = func() {
		for i := len(taken) - 1; i >= 0; i-- {
			taken[i]()
		}
	}
	for _, p := range []struct {
		name   string
		places int
	}{{environment + " " + host, maxNotifyingHost}, {environment, maxNotifyingEnv}} {
		part := t.use(p.name, p.places)
		if !wait(ctx, part.places) {
			t.unuse(p.name)
			leave()
			return nil, false
		}
		taken = append(taken, func() {
			<-part.places
			t.unuse(p.name)
		})
	}
	if !wait(ctx, t.all) {
		leave()
		return nil, false
	}
	taken = append(taken, func() { <-t.all })
	return leave, true
}

// wait takes a place; false when ctx ended before.
func wait(ctx context.Context, places chan struct{}) bool {
	select {
	case places <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// use returns the part of that name, for one more user.
func (t *turns) use(name string, places int) *part {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.parts[name]
	if p == nil {
		p = &part{places: make(chan struct{}, places)}
		t.parts[name] = p
	}
	p.users++
	return p
}

// unuse forgets the part with its last user.
func (t *turns) unuse(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p := t.parts[name]; p.users > 1 {
		p.users--
	} else {
		delete(t.parts, name)
	}
}
