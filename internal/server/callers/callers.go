package callers

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/access"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/rights"
)

// The bounds of waiting for the state of the leader.
const (
	catchUpFor   = time.Second           // the longest
	catchUpPause = 10 * time.Millisecond // between two rounds, so that wrong tokens keep no leader busy
)

// Knowing resolves tokens at a server that may be behind the leader: one that it does not know may just have been made. It asks
// again once its state has all that was acknowledged. All who wait share a round, which began after they came.
type Knowing struct {
	httpapi.Resolver
	Leads   func() bool
	CatchUp func(ctx context.Context) error
	Clock   clock.Clock
	Life    context.Context // of rounds, which are nobody's alone

	mu      sync.Mutex
	running bool          // guarded by mu: a round is under way
	waiting chan struct{} // guarded by mu: closed behind the next round; nil: nobody waits for it
}

// Resolve implements httpapi.Resolver.
func (k *Knowing) Resolve(secret acl.Secret) (*rights.Caller, error) {
	caller, err := k.Resolver.Resolve(secret)
	if !errors.Is(err, access.ErrNoToken) || k.Leads() {
		return caller, err
	}
	<-k.join()
	return k.Resolver.Resolve(secret)
}

// join returns what is closed behind the next round.
func (k *Knowing) join() <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.waiting == nil {
		k.waiting = make(chan struct{})
	}
	if !k.running {
		k.running = true
		go k.rounds() // ends when nobody waits
	}
	return k.waiting
}

// rounds goes on while somebody waits. A round that fails ends, too: what is known then has to do.
func (k *Knowing) rounds() {
	for k.round() {
		clock.Sleep(k.Life, k.Clock, catchUpPause)
	}
}

// round serves those who wait; false if nobody does.
func (k *Knowing) round() bool {
	k.mu.Lock()
	waiting := k.waiting
	k.waiting = nil
	k.running = waiting != nil
	k.mu.Unlock()
	if waiting == nil {
		return false
	}
	defer close(waiting)
	ctx, cancel := k.Clock.WithTimeout(k.Life, catchUpFor)
	defer cancel()
	_ = k.CatchUp(ctx) // without a leader the state is as new as it can be
	return true
}
