package agent

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/node/pace"
	"github.com/drover-project/drover/internal/wake"
)

const (
	pushInterval = time.Second            // what is not urgent rides along at most this late
	pushHealth   = 200 * time.Millisecond // and what a roll-out waits for; as Nomad's clients do
	pushPace     = 5 * time.Millisecond   // between two messages: under load they carry more each
	pushLull     = 20 * time.Millisecond  // when no more come, what has come is sent
	pushBatch    = 1000                   // updates in one message
	pushRetryMax = 10 * time.Second
)

// pusher reports observations: the newest of each allocation, urgent ones at once (or together, where pace says so), and each update of a
// warm pool, as claims may wait for it. Adding never blocks.
type pusher struct {
	control exchange.Controller
	nodeID  string
	clock   clock.Clock
	log     *slog.Logger
	wake    wake.Signal // something became urgent, or the first came

	mu      sync.Mutex // guards what follows
	pending map[string]exchange.AllocUpdate
	urgent  bool
	awaited bool                 // one of a warm pool is urgent
	since   time.Time            // of the oldest pending
	judged  time.Time            // when the health was added that is pending for the longest; zero: none is
	newest  time.Time            // of the newest urgent one
	rate    pace.Rate            // of urgent ones
	pools   map[string]bool      // allocations that claims may wait for
	moving  map[string]bool      // those that control has as pending, or wants to stop
	status  map[string]string    // client status that control knows
	healths map[string]bool      // those whose health control knows
	failing map[string][]string  // services that fail their checks, as was added last
	heard   map[string]time.Time // when control acknowledged an end
	order   uint64               // of the newest update that was sent: see exchange.AllocUpdate
}

// newPusher returns a pusher of the node, whose updates are ordered behind that number. It sends nothing before run is called, but may
// be given updates.
func newPusher(control exchange.Controller, nodeID string, order uint64, c clock.Clock, log *slog.Logger) *pusher {
	return &pusher{
		control: control, nodeID: nodeID, order: order, clock: c, log: log, wake: wake.NewSignal(),
		pending: map[string]exchange.AllocUpdate{}, status: map[string]string{}, heard: map[string]time.Time{}, healths: map[string]bool{},
		pools: map[string]bool{}, moving: map[string]bool{}, failing: map[string][]string{},
	}
}

// know records which status control has of an allocation, so that only a change of it is urgent.
func (p *pusher) know(a *drover.Allocation) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.status[a.ID], p.healths[a.ID] = a.ClientStatus, a.DeploymentStatus.Judged()
	p.hear(a)
	if a.Job != nil {
		if g := a.Job.Group(a.TaskGroup); g != nil && g.Pool != nil {
			p.pools[a.ID] = true
		}
	}
}

// hear marks the allocation as moving if it is starting or stopping. What is sent from now on is ordered behind what control has of it,
// though this process may not know that the node ever said it. mu is held.
func (p *pusher) hear(a *drover.Allocation) {
	p.order = max(p.order, a.Reported)
	if !a.ClientTerminal() && (a.ClientStatus == drover.AllocClientPending || a.ServerTerminal()) {
		p.moving[a.ID] = true
	}
}

// learn is know for an allocation that was restored: what this process heard from control itself stays.
func (p *pusher) learn(a *drover.Allocation) {
	p.mu.Lock()
	_, known := p.status[a.ID]
	p.hear(a)
	p.mu.Unlock()
	if !known {
		p.know(a)
	}
}

// forget drops an allocation that control does not ask about any more. Its last update is still sent.
func (p *pusher) forget(id string) {
	p.mu.Lock()
	delete(p.status, id)
	delete(p.healths, id)
	delete(p.heard, id)
	delete(p.pools, id)
	delete(p.moving, id)
	delete(p.failing, id)
	p.mu.Unlock()
}

// heardEnd says when control acknowledged that the allocation has ended; the zero time if it has not.
func (p *pusher) heardEnd(id string) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.heard[id]
}

// add replaces what is pending of the allocation. A changed client status is urgent, and what clients of its services are to know.
func (p *pusher) add(u exchange.AllocUpdate) {
	p.mu.Lock()
	now := p.clock.Now()
	first := len(p.pending) == 0
	if first {
		p.since = now
	}
	p.pending[u.ID] = u
	changed := p.status[u.ID] != u.ClientStatus
	awaited := changed && p.pools[u.ID] && !p.awaited
	if !slices.Equal(p.failing[u.ID], u.FailingServices) {
		changed = true
	}
	if p.failing[u.ID] = u.FailingServices; len(u.FailingServices) == 0 || u.ClientStatus != drover.AllocClientRunning {
		delete(p.failing, u.ID) // of one that is forgotten, too
	}
	urgent := changed && !p.urgent
	if u.DeploymentStatus.Judged() && !p.healths[u.ID] && p.judged.IsZero() {
		p.judged, first = now, true
	}
	if changed {
		p.newest = now
		p.rate.Count(now)
	}
	p.urgent, p.awaited = p.urgent || urgent, p.awaited || awaited
	p.mu.Unlock()
	if first || urgent || awaited {
		p.wake.Send()
	}
}

// take empties and returns the pending updates if they are due. Otherwise wait says for how long they may still wait; 0
// means that there are none.
func (p *pusher) take() (updates []exchange.AllocUpdate, wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.pending) == 0 {
		return nil, 0
	}
	now := p.clock.Now()
	due := p.since.Add(pushInterval)
	switch {
	case p.awaited:
		due = now
	case !p.urgent && !p.judged.IsZero() && p.judged.Add(pushHealth).Before(due):
		due = p.judged.Add(pushHealth)
	case p.urgent:
		due = p.since.Add(p.rate.Spread(now, len(p.moving)))
		if lull := p.newest.Add(pushLull); lull.Before(due) {
			due = lull
		}
	}
	if wait := due.Sub(now); wait > 0 {
		return nil, wait
	}
	updates = p.ordered()
	clear(p.pending)
	p.urgent, p.awaited, p.judged = false, false, time.Time{}
	return updates, 0
}

// ordered returns what is pending, ordered behind all that was sent before. What is sent again is that too: whoever still passes its
// former copy on comes too late with it. mu is held.
func (p *pusher) ordered() []exchange.AllocUpdate {
	updates := make([]exchange.AllocUpdate, 0, len(p.pending))
	for _, u := range p.pending {
		p.order++
		u.Order = p.order
		updates = append(updates, u)
	}
	return updates
}

// giveBack makes unsent updates pending again, unless there are newer ones.
func (p *pusher) giveBack(updates []exchange.AllocUpdate) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, u := range updates {
		if _, newer := p.pending[u.ID]; !newer {
			p.pending[u.ID] = u
		}
	}
	p.urgent = true
}

// acknowledged notes what control has heard. An update of an allocation that was forgotten meanwhile changes nothing, so
// that the maps do not grow.
func (p *pusher) acknowledged(updates []exchange.AllocUpdate) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock.Now()
	for _, u := range updates {
		if _, known := p.status[u.ID]; !known {
			continue
		}
		p.status[u.ID], p.healths[u.ID] = u.ClientStatus, u.DeploymentStatus.Judged()
		if u.ClientStatus != drover.AllocClientPending {
			delete(p.moving, u.ID)
		}
		if (&drover.Allocation{ClientStatus: u.ClientStatus}).ClientTerminal() {
			p.heard[u.ID] = now
		}
	}
}

// run sends until ctx ends. It begins once control was contacted.
func (p *pusher) run(ctx context.Context, contacted <-chan struct{}) {
	select {
	case <-contacted:
	case <-ctx.Done():
		return
	}
	pause := backoff{clock: p.clock, max: pushRetryMax}
	var last time.Time
	for ctx.Err() == nil {
		if early := pushPace - p.clock.Now().Sub(last); early > 0 {
			clock.Sleep(ctx, p.clock, early)
		}
		updates, wait := p.take()
		if len(updates) == 0 {
			p.rest(ctx, wait)
			continue
		}
		last = p.clock.Now()
		if p.send(ctx, updates) {
			pause.reset()
		} else {
			pause.wait(ctx)
		}
	}
}

// rest waits until there is something to do. wait 0 = until something comes.
func (p *pusher) rest(ctx context.Context, wait time.Duration) {
	var due <-chan time.Time
	if wait > 0 {
		t := p.clock.NewTimer(wait)
		defer t.Stop()
		due = t.C()
	}
	select {
	case <-p.wake.C():
	case <-due:
	case <-ctx.Done():
	}
}

// send reports whether all went through.
func (p *pusher) send(ctx context.Context, updates []exchange.AllocUpdate) bool {
	for len(updates) > 0 {
		batch := updates[:min(pushBatch, len(updates))]
		if err := p.control.Push(ctx, p.nodeID, batch); err != nil {
			if ctx.Err() == nil {
				p.log.Warn("reporting to control failed, trying again", "allocations", len(updates), "error", err)
			}
			p.giveBack(updates)
			return false
		}
		p.acknowledged(batch)
		updates = updates[len(batch):]
	}
	return true
}

// flush sends what is pending once, before the process ends.
func (p *pusher) flush(ctx context.Context) {
	p.mu.Lock()
	updates := p.ordered()
	p.mu.Unlock()
	if len(updates) == 0 {
		return
	}
	ctx, cancel := p.clock.WithTimeout(ctx, time.Second)
	defer cancel()
	p.send(ctx, updates)
}
