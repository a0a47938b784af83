package link

import (
	"context"
	"time"

	"github.com/drover-project/drover/internal/clock"
)

// How often a node asks its main server for a sign of life while nothing else comes from it, and how long that may take. With more
// than some 1,600 nodes the pace goes down as that of their heartbeats does, so that all nodes together do not ask more often. A server
// that stands still is left within two seconds all the same: the others find that out, and tell the nodes, which look for themselves
// then. One that is killed closes its connections, and is left at once. Only who is cut off from a server by itself may need longer.
const (
	leastPace  = 400 * time.Millisecond
	mostPace   = 5 * time.Second
	paceOfTTL  = 40 // pings within the time between two heartbeats
	pingWithin = time.Second

	doubtWithin = 700 * time.Millisecond // of a server that others do not hear either
)

// The pace before a server has said it is that of a large cluster. Thousands of nodes may be about to register, and busy
// servers have better things to do than to say that they live.
const firstPace = mostPace

// longer doubles a time for each failure, to ten seconds at most.
func longer(d time.Duration, failed int) time.Duration {
	return min(d<<min(failed, 4), max(d, mostPatience))
}

// mostPatience bounds what longer returns. Once no server was silent for twice that time, the next one is given no more than
// usual.
const mostPatience = 10 * time.Second

// pace is how often a node pings that is to send a heartbeat within the time.
func pace(ttl time.Duration) time.Duration { return min(max(ttl/paceOfTTL, leastPace), mostPace) }

// watch leaves the main server when it does not answer any more, if there is another one, until ctx ends. Whatever comes from
// the server is a sign of life, so that a busy line carries no pings. A node that left a server gives the next one more time.
// If all are too busy to answer, going from one to the other makes them busier.
func (d *Dialed) watch(ctx context.Context) {
	silent, since := 0, d.cfg.Clock.Now()
	for ctx.Err() == nil {
		if d.cfg.Clock.Now().Sub(since) > 2*mostPatience {
			silent = 0
		}
		s, moved, every := d.watched()
		heard := uint64(0)
		if s != nil {
			heard = s.line.heard.Load()
		}
		if !clock.Await(ctx, d.cfg.Clock, every, moved.Done(), d.doubt.C()) {
			return
		}
		doubted := d.doubted()
		if s == nil || moved.Err() != nil || !doubted && s.line.heard.Load() != heard {
			continue
		}
		within := longer(pingWithin, silent)
		if doubted { // it is not this node alone that is not answered
			within = doubtWithin
		}
		if err := s.line.ping(ctx, within); err != nil {
			silent, since = silent+1, d.cfg.Clock.Now()
			d.leave(s, err)
		}
	}
}

// suspect notes that a server does not answer another one. If it is the main one, watch looks at once whether it answers this node.
func (d *Dialed) suspect(serverID string) {
	d.mu.Lock()
	is := d.main != nil && d.main.id == serverID && len(d.list) > 1
	d.doubts = d.doubts || is
	d.mu.Unlock()
	if is {
		d.doubt.Send()
	}
}

// doubted reports whether the main server was suspected since the last time.
func (d *Dialed) doubted() (is bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	is, d.doubts = d.doubts, false
	return is
}

// watched returns the main server, nil if there is none that could be left, and when to look again at the latest.
func (d *Dialed) watched() (s *server, moved context.Context, every time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.list) > 1 {
		s = d.main
	}
	return s, d.moved, d.pace
}
