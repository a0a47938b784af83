package sim

import (
	"context"
	"time"

	"github.com/drover-project/drover/internal/clock"
)

// simClock is the world's time as a clock.Clock. Its timers are events, and the loops that it runs are coroutines.
type simClock struct {
	w     *World
	scope *scope // of the loops that are started
}

var _ clock.Cooperative = simClock{}

// Now implements clock.Clock.
func (c simClock) Now() time.Time { return c.host().now(c.w) }

// host is whose clock it is.
func (c simClock) host() *host {
	if c.scope == nil {
		return nil
	}
	return c.scope.host
}

// Await implements clock.Cooperative.
func (c simClock) Await(ctx context.Context, d time.Duration, signals ...<-chan struct{}) bool {
	if ctx.Err() == nil {
		c.w.current.await(c.host().lasts(d), append(signals, ctx.Done())...)
	}
	return ctx.Err() == nil
}

// Go implements clock.Cooperative.
func (c simClock) Go(f func()) { c.scope.spawn("loop", func(*proc) { f() }) }

// NewTimer implements clock.Clock.
func (c simClock) NewTimer(d time.Duration) clock.Timer {
	t := &simTimer{w: c.w, host: c.host(), c: make(chan time.Time, 1)}
	t.Reset(d)
	return t
}

// AfterFunc implements clock.Clock; f is called by the one goroutine.
func (c simClock) AfterFunc(d time.Duration, f func()) clock.Timer {
	t := &simTimer{w: c.w, host: c.host(), f: f}
	t.Reset(d)
	return t
}

// WithTimeout implements clock.Clock.
func (c simClock) WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	t := c.AfterFunc(d, cancel)
	return ctx, func() { t.Stop(); cancel() }
}

// simTimer is a clock.Timer in virtual time. A setting that was replaced or stopped is known by its number and does
// nothing.
type simTimer struct {
	w    *World
	host *host
	c    chan time.Time
	f    func()
	set  uint64 // of the running setting; 0 = stopped
	n    uint64
}

// C implements clock.Timer.
func (t *simTimer) C() <-chan time.Time { return t.c }

// Stop implements clock.Timer.
func (t *simTimer) Stop() bool {
	was := t.set != 0
	t.set = 0
	return was
}

// Reset implements clock.Timer.
func (t *simTimer) Reset(d time.Duration) bool {
	was := t.Stop()
	t.n++
	mine := t.n
	t.set = mine
	t.w.after(t.host.lasts(d), "timer", func() { t.host.run(func() { t.due(mine) }) })
	return was
}

// due is called when the setting's time is over.
func (t *simTimer) due(setting uint64) {
	if t.set != setting {
		return
	}
	t.set = 0
	if t.f != nil {
		t.f()
		return
	}
	select {
	case t.c <- t.w.now:
	default:
	}
}
