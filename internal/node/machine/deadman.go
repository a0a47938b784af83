package machine

import (
	"context"
	"time"

	"github.com/drover-project/drover/internal/clock"
)

const (
	// watchEvery is how often the switch looks; it fires that much late at most.
	watchEvery = 5 * time.Second
	// stopWithin is how long work has to end on a machine that is given up.
	stopWithin = time.Minute
)

// watch is the dead-man switch: it fires when no server answered for so long that nobody may know of this machine any
// more. What it costs then would not end by itself. Errors: ErrDead.
func (g *Guard) watch(ctx context.Context) error {
	for g.deps.Clock.Now().Before(g.deadline()) {
		if !clock.Sleep(ctx, g.deps.Clock, watchEvery) {
			return nil
		}
	}
	g.deps.Log.Error(
		"no server answered for too long: giving up this machine", "since", g.lastHeard(), "work", g.deps.Work(), "power_off", g.cfg.PowerOff,
	)
	close(g.dead) // the agent is told that nothing is wanted any more
	limit := g.deps.Clock.Now().Add(stopWithin)
	for g.deps.Work() > 0 && g.deps.Clock.Now().Before(limit) {
		if !clock.Sleep(ctx, g.deps.Clock, watchEvery) {
			return nil
		}
	}
	for len(g.cfg.PowerOff) > 0 && ctx.Err() == nil {
		if out, err := g.deps.Command(ctx, g.cfg.PowerOff); err != nil && ctx.Err() == nil {
			g.deps.Log.Error("powering off", "error", err, "says", string(out))
		}
		clock.Sleep(ctx, g.deps.Clock, time.Minute) // it may take a while; then it is tried again
	}
	if len(g.cfg.PowerOff) > 0 {
		return nil
	}
	return ErrDead
}

// deadline is when the switch fires if nothing is heard until then.
func (g *Guard) deadline() time.Time {
	limit := g.cfg.Idle
	if g.deps.Work() > 0 {
		limit = g.cfg.Busy
	}
	if limit == 0 {
		return g.deps.Clock.Now().Add(time.Hour)
	}
	return g.lastHeard().Add(limit)
}

// lastHeard is when control last answered any call, at first when the guard was made.
func (g *Guard) lastHeard() time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.heard
}
