package link

import (
	"context"
	"errors"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/link/wire"
)

// Register implements exchange.Controller. It waits until control can reach the node: from then on the node gets work,
// and is asked about it. Errors: those of the call, and ctx's.
func (d *Dialed) Register(ctx context.Context, n *drover.Node) (exchange.Registration, error) {
	select {
	case <-d.open:
	case <-ctx.Done():
		return exchange.Registration{}, ctx.Err()
	}
	return d.registered(ask(ctx, d, func(ctx context.Context, c *Control) (exchange.Registration, error) { return c.Register(ctx, n) }))
}

// Heartbeat implements exchange.Controller.
func (d *Dialed) Heartbeat(ctx context.Context, nodeID string) (exchange.Registration, error) {
	return d.registered(ask(ctx, d, func(ctx context.Context, c *Control) (exchange.Registration, error) { return c.Heartbeat(ctx, nodeID) }))
}

// registered learns from the answer which servers there are.
func (d *Dialed) registered(r exchange.Registration, err error) (exchange.Registration, error) {
	if err == nil {
		d.mu.Lock()
		first := d.known.IsZero()
		if d.pace = pace(r.TTL); first {
			d.known = d.cfg.Clock.Now()
		}
		d.mu.Unlock()
		if first {
			d.changed.Send()
		}
		d.Learn(r.Servers)
		d.prefer()
	}
	return r, err
}

// Pull implements exchange.Controller.
func (d *Dialed) Pull(ctx context.Context, nodeID string, seen exchange.Seen, maxWait time.Duration) (exchange.Assignment, error) {
	return ask(ctx, d, func(ctx context.Context, c *Control) (exchange.Assignment, error) {
		return c.Pull(ctx, nodeID, seen, maxWait)
	})
}

// Push implements exchange.Controller.
func (d *Dialed) Push(ctx context.Context, nodeID string, updates []exchange.AllocUpdate) error {
	_, err := ask(ctx, d, func(ctx context.Context, c *Control) (wire.Empty, error) {
		return wire.Empty{}, c.Push(ctx, nodeID, updates)
	})
	return err
}

// SignIdentities implements exchange.Identities.
func (d *Dialed) SignIdentities(
	ctx context.Context, nodeID string, wanted []exchange.IdentityRequest,
) ([]exchange.SignedIdentity, error) {
	return ask(ctx, d, func(ctx context.Context, c *Control) ([]exchange.SignedIdentity, error) {
		return c.SignIdentities(ctx, nodeID, wanted)
	})
}

// Look implements exchange.Lookups.
func (d *Dialed) Look(ctx context.Context, nodeID string, asked []exchange.Lookup, maxWait time.Duration) ([]exchange.Found, error) {
	return ask(ctx, d, func(ctx context.Context, c *Control) ([]exchange.Found, error) {
		return c.Look(ctx, nodeID, asked, maxWait)
	})
}

// DrainSelf implements exchange.Drains.
func (d *Dialed) DrainSelf(ctx context.Context, nodeID string, spec *drover.DrainSpec) error {
	_, err := ask(ctx, d, func(ctx context.Context, c *Control) (wire.Empty, error) {
		return wire.Empty{}, c.DrainSelf(ctx, nodeID, spec)
	})
	return err
}

// ask asks the main server. If that one is gone, or can do nothing, the next server becomes the main one and is asked, until
// each had its turn. After that each further round waits longer.
func ask[T any](ctx context.Context, d *Dialed, f func(context.Context, *Control) (T, error)) (answer T, err error) {
	err = drover.Errorf(drover.Unavailable, "no server is known")
	for turns := d.count(); turns > 0; {
		s, c, moved := d.mainServer()
		call, cancel := context.WithCancel(ctx)
		stop := context.AfterFunc(moved, cancel) //nolint:contextcheck // it watches the move
		answer, err = f(call, c)
		stop()
		cancel()
		switch {
		case err == nil || ctx.Err() != nil:
			return answer, err
		case moved.Err() != nil: // by another call, which had the reason
		case !elsewhere(err):
			return answer, err
		default:
			d.leave(s, err)
			turns--
		}
	}
	return answer, err
}

// elsewhere reports whether another server may answer otherwise. A join token may be known to one server only, and a server may
// be of a version whose leader it does not understand.
func elsewhere(err error) bool {
	code := drover.CodeOf(err)
	return code == drover.Unavailable || code == drover.NotLeader || code == drover.Unauthorized || code == drover.NotImplemented ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

var _ exchange.Controller = (*Dialed)(nil)
