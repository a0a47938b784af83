package agent

import (
	"context"
	"maps"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/node/cloud"
)

const (
	retryMin        = 100 * time.Millisecond
	retryMax        = 15 * time.Second
	defaultTTL      = 20 * time.Second
	fingerprintWait = time.Minute
)

// stayRegistered registers the node, says that it is alive, and registers again when control forgot it or its
// fingerprint changed.
func (a *Agent) stayRegistered(ctx context.Context) {
	if len(a.runners()) > 0 { // who has none has nothing to lose
		clock.Await(ctx, a.clock, cloud.Wait, a.heard)
	}
	heard := a.clock.Now()
	registered := false
	retry := retryMin
	for {
		var answer exchange.Registration
		var err error
		if registered {
			answer, err = a.control.Heartbeat(ctx, a.identity.ID)
		} else {
			if answer, err = a.control.Register(ctx, a.node.Load()); err == nil {
				a.sight.Registered(answer)
			}
		}
		if ctx.Err() != nil {
			return
		}
		wait := retry
		if err == nil {
			once(a.known)
			registered, heard, retry = true, a.clock.Now(), retryMin
			wait = answer.TTL / 2
			if wait <= 0 {
				wait = defaultTTL / 2
			}
		} else {
			registered = registered && drover.CodeOf(err) != drover.NotFound
			a.log.Warn("control did not hear the node, trying again", "error", err, "in", retry)
			retry = min(2*retry, retryMax)
			a.stopDisconnected(a.clock.Now().Sub(heard))
		}
		if a.await(ctx, wait) {
			registered = false
		}
		if ctx.Err() != nil {
			return
		}
	}
}

// watchDrivers asks for a registration whenever a driver's health, the networks of CNI or the machine changed. It is a loop of its own, as
// a driver may take its time to answer, and the heartbeat must not wait for it.
func (a *Agent) watchDrivers(ctx context.Context) {
	for clock.Sleep(ctx, a.clock, fingerprintWait) {
		if drivers, machine := a.lookAgain(ctx), a.lookAtMachine(ctx); a.lookAtNetworks(ctx) || drivers || machine {
			a.again.Send()
		}
	}
}

// once closes the channel, if nobody has. Each channel has one goroutine at a time that does.
func once(c chan struct{}) {
	select {
	case <-c:
	default:
		close(c)
	}
}

// await waits for d or until somebody asks for a registration; it reports the latter.
func (a *Agent) await(ctx context.Context, d time.Duration) bool {
	t := a.clock.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C():
	case <-a.again.C():
		return true
	case <-ctx.Done():
	}
	return false
}

// lookAgain asks the drivers how they are, and reports whether the node changed.
func (a *Agent) lookAgain(ctx context.Context) bool {
	changed := map[string]*drover.DriverInfo{}
	for name, d := range a.drivers {
		info := d.Fingerprint(ctx)
		was := a.node.Load().Drivers[name]
		if was == nil || was.Detected != info.Detected || was.Healthy != info.Healthy || was.HealthDescription != info.HealthDescription {
			changed[name] = &info
		}
	}
	if len(changed) == 0 {
		return false
	}
	a.amend(func(n *drover.Node) {
		n.Attributes, n.Drivers = maps.Clone(n.Attributes), maps.Clone(n.Drivers)
		maps.Copy(n.Drivers, changed)
		for name, info := range changed {
			maps.Copy(n.Attributes, info.Attributes)
			delete(n.Attributes, "driver."+name)
			if info.Detected && info.Healthy {
				n.Attributes["driver."+name] = "1"
			}
		}
	})
	return true
}

// amend changes a copy of the node, which is then the node.
func (a *Agent) amend(change func(n *drover.Node)) {
	a.nodeMu.Lock()
	defer a.nodeMu.Unlock()
	n := *a.node.Load()
	change(&n)
	n.ComputedClass = class(&n)
	a.node.Store(&n)
}

// stopDisconnected ends the allocations that must not run this long without control (stop_on_client_after).
func (a *Agent) stopDisconnected(away time.Duration) {
	for _, r := range a.runners() {
		g := r.Group()
		limit := time.Duration(0)
		if g.Disconnect != nil {
			limit = g.Disconnect.StopOnClientAfter
		}
		if limit == 0 && g.StopAfterClientDisconnect != nil {
			limit = *g.StopAfterClientDisconnect
		}
		if limit > 0 && away >= limit && !r.View().Ended() {
			a.log.Warn("stopping an allocation: control is away for too long", "alloc", r.View().Alloc.ID, "away", away)
			r.Remove(false)
		}
	}
}

// backoff waits longer each time; it reports false when ctx ended.
type backoff struct {
	clock clock.Clock
	next  time.Duration
	max   time.Duration
}

// wait sleeps for twice as long as the last time, from retryMin up to max, or until ctx ends.
func (b *backoff) wait(ctx context.Context) {
	b.next = min(max(2*b.next, retryMin), b.max)
	clock.Sleep(ctx, b.clock, b.next)
}

// reset makes the next wait a short one, after something went well.
func (b *backoff) reset() { b.next = 0 }
