package lessee

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/leases"
)

// renew tells the leader again and again that the incarnation lives. An answer lets this server hand out for leases.Lasts from
// before it asked.
func (l *Lessee) renew(ctx context.Context, lease uint64) {
	for more := true; more; {
		until := l.deps.Clock.Now().Add(leases.Lasts)
		limit, cancel := l.deps.Clock.WithTimeout(ctx, leases.Renew) // a connection that lost packets is slower than a new one
		err := l.AnswerRenew(lease)
		if drover.CodeOf(err) == drover.NotLeader {
			err = l.deps.Peers.Renew(limit, lease)
		}
		cancel()
		wait := leases.Renew
		if err == nil {
			l.heardOf(until)
		} else if wait /= 4; ctx.Err() == nil {
			l.deps.Log.Debug("the leader is not reached: soon nothing is handed out", "error", err)
		}
		more = clock.Sleep(ctx, l.deps.Clock, wait)
	}
}

// heardOf lets this server hand out until that time.
func (l *Lessee) heardOf(until time.Time) {
	held := l.holds()
	l.until.Store(&until)
	if !held {
		l.changed.Send()
	}
}

// AnswerRenew notes that an incarnation lives. Errors: NotLeader; Gone: it has ended, and its server does not know that yet.
func (l *Lessee) AnswerRenew(incarnation uint64) error {
	if !l.deps.Leads() {
		return drover.Errorf(drover.NotLeader, "No cluster leader")
	}
	if !l.lives(incarnation) {
		return drover.Errorf(drover.Gone, "incarnation %d has ended", incarnation)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.heard.Heard(l.deps.Clock.Now(), incarnation) {
		return drover.Errorf(drover.NotLeader, "this server has not begun to lead, or stood still a moment ago")
	}
	return nil
}

// beat notes that this server, which leads, runs.
func (l *Lessee) beat(ctx context.Context) {
	for more := true; more; more = clock.Sleep(ctx, l.deps.Clock, leases.BeatEvery) {
		l.mu.Lock()
		l.heard.Beat(l.deps.Clock.Now())
		l.mu.Unlock()
	}
}

// watch ends the incarnations of servers that are not heard of, for as long as this server leads.
func (l *Lessee) watch(ctx context.Context) {
	l.terms.Add(1)
	l.mu.Lock()
	l.heard = leases.Watch{}
	l.heard.Beat(l.deps.Clock.Now())
	l.mu.Unlock()
	var beating sync.WaitGroup
	beating.Go(func() { l.beat(ctx) }) // ends with ctx
	defer beating.Wait()
	told := map[uint64]bool{} // incarnations that are said to be gone
	for ctx.Err() == nil {
		changed := l.deps.Changed()
		var live []uint64
		for _, one := range l.deps.Lessees() {
			live = append(live, one.Incarnation)
		}
		l.mu.Lock()
		now := l.deps.Clock.Now()
		l.heard.Beat(now)
		due, again := l.heard.Due(now, live)
		l.mu.Unlock()
		heir := l.heir(due)
		if l.rescue(ctx, heir, told); len(live) > 1 {
			again = now.Add(min(again.Sub(now), lookEvery))
		}
		for _, incarnation := range due {
			l.deps.Log.Warn("a server is not heard of: its claimed runners are taken over, and its warm ones started anew",
				"incarnation", incarnation)
			if err := l.deps.Intake.EndIncarnation(ctx, incarnation, heir, false); err != nil {
				l.deps.Log.Warn("taking leases away", "error", err)
				again = now.Add(retry)
			}
		}
		clock.Await(ctx, l.deps.Clock, again.Sub(now), changed)
	}
}

// heir is the incarnation that takes over: this server's, or 0, the oldest that lives.
func (l *Lessee) heir(due []uint64) uint64 {
	if life := l.life.Load(); life != nil && !slices.Contains(due, life.lease) {
		return life.lease
	}
	return 0
}

// How often the leader looks for processes that are gone, and for how long at each server that is silent.
const (
	lookEvery = 500 * time.Millisecond
	lookFor   = 300 * time.Millisecond
)

// rescue takes the claimed runners from servers whose process is gone: their users do not wait until the incarnation ends. A
// process that is gone uses them no more. If it was not gone after all, no runner is handed out twice by that. Without an heir
// nothing moves, and it is tried again; the log says so once for each incarnation.
func (l *Lessee) rescue(ctx context.Context, heir uint64, told map[uint64]bool) {
	for _, one := range l.deps.Lessees() {
		l.mu.Lock()
		silent := l.heard.Silent(l.deps.Clock.Now(), one.Incarnation)
		l.mu.Unlock()
		if !silent || one.Server == l.cfg.Server || one.Incarnation == heir || !l.deps.Keeps(one.Incarnation) {
			continue
		}
		limit, cancel := l.deps.Clock.WithTimeout(ctx, lookFor)
		gone := l.deps.Peers.Gone(limit, one.Server)
		cancel()
		if !gone {
			continue
		}
		if !told[one.Incarnation] {
			told[one.Incarnation] = true
			l.deps.Log.Warn("a server's process is gone: its claimed runners are taken over", "incarnation", one.Incarnation)
		}
		if err := l.deps.Intake.MoveClaimed(ctx, one.Incarnation, heir); err != nil {
			l.deps.Log.Warn("taking claimed runners over", "error", err)
		}
	}
}

// holds reports whether what is leased to this server is still its to hand out.
func (l *Lessee) holds() bool {
	until := l.until.Load()
	return until != nil && l.deps.Clock.Now().Before(*until)
}
