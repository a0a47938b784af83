package virtual

import (
	"context"
	"time"

	"github.com/drover-project/drover/internal/clock"
)

// Clock is the world's time as a clock.Clock. Its timers are events, and the loops that it runs are coroutines.
type Clock struct {
	W     *World
	Scope *Scope // of the loops that are started
}

var _ clock.Cooperative = Clock{}

// Now implements clock.Clock.
func (c Clock) Now() time.Time { return c.host().Now(c.W) }

// host is whose clock it is.
func (c Clock) host() *Host {
	if c.Scope == nil {
		return nil
	}
	return c.Scope.Host
}

// Await implements clock.Cooperative.
func (c Clock) Await(ctx context.Context, d time.Duration, signals ...<-chan struct{}) bool {
	if ctx.Err() == nil {
		c.W.Current.await(c.host().Lasts(d), append(signals, ctx.Done())...)
	}
	return ctx.Err() == nil
}

// Go implements clock.Cooperative.
func (c Clock) Go(f func()) { c.Scope.Spawn("loop", func(*Proc) { f() }) }

// NewTimer implements clock.Clock.
func (c Clock) NewTimer(d time.Duration) clock.Timer {
	t := &timer{w: c.W, host: c.host(), c: make(chan time.Time, 1)}
	t.Reset(d)
	return t
}

// AfterFunc implements clock.Clock; f is called by the one goroutine.
func (c Clock) AfterFunc(d time.Duration, f func()) clock.Timer {
	t := &timer{w: c.W, host: c.host(), f: f}
	t.Reset(d)
	return t
}

// WithTimeout implements clock.Clock.
func (c Clock) WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	t := c.AfterFunc(d, cancel)
	return ctx, func() { t.Stop(); cancel() }
}

// timer is a clock.Timer in virtual time. A setting that was replaced or stopped is known by its number and does
// nothing.
type timer struct {
	w    *World
	host *Host
	c    chan time.Time
	f    func()
	set  uint64 // of the running setting; 0 = stopped
	n    uint64
}

// C implements clock.Timer.
func (t *timer) C() <-chan time.Time { return t.c }

// Stop implements clock.Timer.
func (t *timer) Stop() bool {
	was := t.set != 0
	t.set = 0
	return was
}

// Reset implements clock.Timer.
func (t *timer) Reset(d time.Duration) bool {
	was := t.Stop()
	t.n++
	mine := t.n
	t.set = mine
	t.w.After(t.host.Lasts(d), "timer", func() { t.host.run(func() { t.due(mine) }) })
	return was
}

// due is called when the setting's time is over.
func (t *timer) due(setting uint64) {
	if t.set != setting {
		return
	}
	t.set = 0
	if t.f != nil {
		t.f()
		return
	}
	select {
	case t.c <- t.w.Now:
	default:
	}
}
