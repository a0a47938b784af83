package turns

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

	MaxWaiting = 2_000 // of one environment, also those that are being told; then none is started
)

// Turns lets webhooks be told in turn.
type Turns struct {
	all chan struct{} // holds an element for each that is being told

	mu    sync.Mutex // guards what follows
	parts map[string]*part
}

// part is what webhooks of one environment share, or those of one host of it.
type part struct {
	places chan struct{} // holds an element for each that has a place
	users  int           // with a place, or waiting; guarded by Turns.mu
}

// New returns turns that nobody has taken.
func New() Turns {
	return Turns{all: make(chan struct{}, maxNotifying), parts: map[string]*part{}}
}

// Take waits for the turn of a webhook; leave ends it. It reports false when ctx ended before. Places are taken from
// the narrowest bound to the widest, so that who waits holds none that another environment needs.
func (t *Turns) Take(ctx context.Context, address, environment string) (leave func(), ok bool) {
	host := address
	if u, err := url.Parse(address); err == nil {
		host = u.Hostname()
	}
	names := []string{environment + " " + host, environment}
	parts := []*part{t.use(names[0], maxNotifyingHost), t.use(names[1], maxNotifyingEnv)}
	places := []chan struct{}{parts[0].places, parts[1].places, t.all}
	taken := 0
	leave = func() {
		for _, p := range places[:taken] {
			<-p
		}
		for _, name := range names {
			t.unuse(name)
		}
	}
	for _, p := range places {
		if !wait(ctx, p) {
			leave()
			return nil, false
		}
		taken++
	}
	return leave, true
}

// Crowded reports whether so many webhooks of the environment wait that none is to be added.
func (t *Turns) Crowded(environment string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.parts[environment]
	return p != nil && p.users >= MaxWaiting
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
func (t *Turns) use(name string, places int) *part {
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
func (t *Turns) unuse(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p := t.parts[name]; p.users > 1 {
		p.users--
	} else {
		delete(t.parts, name)
	}
}
