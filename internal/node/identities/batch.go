package identities

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/exchange"
)

// How often and for how long control is asked. Then the task's start has failed, and is tried again under its restart policy.
const (
	tries     = 4
	firstWait = time.Second // it doubles
	patience  = 10 * time.Second
)

// Batches gets tokens. It is for any number of goroutines.
type Batches struct {
	control exchange.Identities
	nodeID  string
	clock   clock.Clock

	mu   sync.Mutex // guards what follows
	busy bool       // a call is under way
	next *batch     // of who came meanwhile
}

// batch is what goes in one call.
type batch struct {
	wanted []exchange.IdentityRequest
	done   chan struct{} // closed when the rest is set
	signed []exchange.SignedIdentity
	err    error
}

// New returns the Batches of a node.
func New(control exchange.Identities, nodeID string, c clock.Clock) *Batches {
	return &Batches{control: control, nodeID: nodeID, clock: c}
}

// Sign returns the tokens that are wanted, in their order. Errors: ctx's, Unavailable when no server answered in time, what control says
// else.
func (b *Batches) Sign(ctx context.Context, wanted []exchange.IdentityRequest) ([]exchange.SignedIdentity, error) {
	if len(wanted) > exchange.MaxIdentities {
		return nil, drover.Errorf(drover.Invalid, "a task has %d identities, which is more than %d", len(wanted), exchange.MaxIdentities)
	}
	mine, from := b.join(ctx, wanted)
	if !clock.Await(ctx, b.clock, clock.Forever, mine.done) {
		return nil, ctx.Err()
	}
	if mine.err != nil {
		return nil, mine.err
	}
	return mine.signed[from : from+len(wanted)], nil
}

// join adds what is wanted to the batch that is called next, and says where in it that is.
func (b *Batches) join(ctx context.Context, wanted []exchange.IdentityRequest) (*batch, int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n := b.next; n != nil && len(n.wanted)+len(wanted) <= exchange.MaxIdentities {
		n.wanted = append(n.wanted, wanted...)
		return n, len(n.wanted) - len(wanted)
	}
	mine := &batch{wanted: slices.Clone(wanted), done: make(chan struct{})}
	if b.busy && b.next == nil {
		b.next = mine
		return mine, 0
	}
	first := !b.busy // else the batch that waits is full, and this one is called by itself
	b.busy = true
	clock.Go(b.clock, func() { b.run(context.WithoutCancel(ctx), mine, first) }) // ends after tries; others wait for it, too
	return mine, 0
}

// run calls control for the batch, and the first one then for those of who came meanwhile.
func (b *Batches) run(ctx context.Context, now *batch, first bool) {
	for now != nil {
		now.signed, now.err = b.call(ctx, now.wanted) // it was taken, so that nobody joins it any more
		close(now.done)
		if !first {
			return
		}
		b.mu.Lock()
		now, b.next = b.next, nil
		b.busy = now != nil
		b.mu.Unlock()
	}
}

// call asks control, again when no server answered.
func (b *Batches) call(ctx context.Context, wanted []exchange.IdentityRequest) (signed []exchange.SignedIdentity, err error) {
	wait := firstWait
	for try := 1; ; try++ {
		limited, cancel := b.clock.WithTimeout(ctx, patience)
		signed, err = b.control.SignIdentities(limited, b.nodeID, wanted)
		cancel()
		if err == nil && len(signed) != len(wanted) {
			return nil, drover.Errorf(drover.Internal, "control answered %d tokens of %d", len(signed), len(wanted))
		}
		if err == nil || try == tries || !again(err) {
			b.dated(signed)
			return signed, err
		}
		clock.Sleep(ctx, b.clock, wait)
		wait *= 2
	}
}

// dated has tokens begin now, by this node's clock: a server's may differ from it by more than a token lives.
func (b *Batches) dated(signed []exchange.SignedIdentity) {
	now := b.clock.Now()
	for i := range signed {
		s := &signed[i]
		if !s.Expires.IsZero() {
			s.Expires = now.Add(s.Expires.Sub(s.Made))
		}
		s.Made = now
	}
}

// again reports whether the same question may have an answer later.
func again(err error) bool {
	switch drover.CodeOf(err) {
	case drover.Unavailable, drover.NotLeader, drover.Canceled, drover.RateLimited, drover.Internal:
		return true
	default:
		return false
	}
}
