package link

import (
	"context"
	"hash/fnv"
	"slices"
	"time"

	"github.com/drover-project/drover/internal/clock"
)

const (
	// hush is for how long a server may say nothing before the next one is tried, too.
	hush = 3 * time.Second
	// mostSpread bounds the wait for the tunnels to the other servers.
	mostSpread = 30 * time.Second
)

// starts notes when the node began to ask for its registration.
func (d *Dialed) starts() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.begun = d.cfg.Clock.Now(); d.cfg.Known {
		d.known = d.begun
	}
}

// awaitTurn waits until it is time for the first tunnel to the server. A node dials the server that it prefers; the next one when that
// fails, or is silent; and all the others once it is registered. So thousands of nodes that start at once are known, and get work,
// with a third of the connections. Where servers took long to register it they have much to do, and are given that time again: once
// to three times, by chance. Until then a node is reached through the servers that have a tunnel (Nodes.Pipes).
func (d *Dialed) awaitTurn(ctx context.Context, s *server) {
	var at *server       // that is waited for
	var heard uint64     // of it
	var silent time.Time // it is since then
	for ctx.Err() == nil {
		changed := d.changed.C()
		front, due := d.turn(s)
		now := d.cfg.Clock.Now()
		switch {
		case front == nil:
			return
		case due.IsZero(): // the node is not registered yet
			if says := front.line.heard.Load(); at != front || says != heard {
				at, heard, silent = front, says, now
			}
			if due = silent.Add(hush); !now.Before(due) {
				d.fail(front)
				continue
			}
		case !now.Before(due):
			return
		}
		clock.Await(ctx, d.cfg.Clock, due.Sub(now), changed)
	}
}

// turn returns the server that is tried before this one, nil if there is none; and when it is this one's turn in any case, zero while
// that is not known.
func (d *Dialed) turn(s *server) (front *server, due time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, x := range d.list {
		if x == s {
			return nil, time.Time{}
		}
		if !x.failed {
			front = x
			break
		}
	}
	if !d.known.IsZero() {
		due = d.known.Add(spread(d.known.Sub(d.begun), d.cfg.Identity.NodeID+s.address))
	}
	return front, due
}

// spread returns how long after its registration, which took so long, a node dials another server.
func spread(took time.Duration, who string) time.Duration {
	h := fnv.New64a()
	_, _ = h.Write([]byte(who)) // it never fails
	return min(took+2*took*time.Duration(h.Sum64()%1024)/1024, mostSpread)
}

// fail has the server not waited for any longer.
func (d *Dialed) fail(s *server) {
	d.mu.Lock()
	s.failed = true
	d.mu.Unlock()
	d.changed.Send()
}

// Whole reports whether all servers reach the node by a tunnel of their own.
func (d *Dialed) Whole() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !slices.ContainsFunc(d.list, func(s *server) bool { return !s.stands })
}
