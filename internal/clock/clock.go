package clock

import (
	"context"
	"math"
	"time"
)

// Clock tells and awaits time.
type Clock interface {
	Now() time.Time
	NewTimer(d time.Duration) Timer
	// AfterFunc calls f in its own goroutine after d.
	AfterFunc(d time.Duration, f func()) Timer
	// WithTimeout is context.WithTimeout on this clock.
	WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc)
}

// Timer is a time.Timer; C is nil for those of AfterFunc.
type Timer interface {
	C() <-chan time.Time
	Stop() bool
	Reset(d time.Duration) bool
}

// Wall is the machine's clock. testing/synctest replaces its time inside a bubble.
type Wall struct{}

// Now returns the current time.
func (Wall) Now() time.Time { return step(time.Now()) }

// NewTimer returns a running timer.
func (Wall) NewTimer(d time.Duration) Timer { return wallTimer{time.NewTimer(d)} }

// AfterFunc calls f after d.
func (Wall) AfterFunc(d time.Duration, f func()) Timer { return wallTimer{time.AfterFunc(d, f)} }

// WithTimeout derives a context that ends after d.
func (Wall) WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, d)
}

type wallTimer struct{ t *time.Timer }

func (w wallTimer) C() <-chan time.Time        { return w.t.C }
func (w wallTimer) Stop() bool                 { return w.t.Stop() }
func (w wallTimer) Reset(d time.Duration) bool { return w.t.Reset(d) }

// Cooperative is a Clock that runs all loops on one goroutine, as the simulation's does. It is asked wherever a loop that
// it is to run waits, or starts another loop.
type Cooperative interface {
	Clock
	// Await implements the function of that name.
	Await(ctx context.Context, d time.Duration, signals ...<-chan struct{}) bool
	// Go implements the function of that name.
	Go(f func())
}

// Forever lets Await wait for its signals alone.
const Forever time.Duration = math.MaxInt64

// Sleep waits for d or until ctx ends; it reports whether d passed.
func Sleep(ctx context.Context, c Clock, d time.Duration) bool { return Await(ctx, c, d) }

// Await waits until one of the signals, at most three, is ready, which it receives, until d passed, or until ctx ended. It
// reports false if ctx ended. A nil signal is never ready.
func Await(ctx context.Context, c Clock, d time.Duration, signals ...<-chan struct{}) bool {
	if own, ok := c.(Cooperative); ok {
		return own.Await(ctx, d, signals...)
	}
	var signal [3]<-chan struct{}
	if copy(signal[:], signals) < len(signals) {
		panic("clock: more than three signals")
	}
	var due <-chan time.Time
	if d != Forever {
		t := c.NewTimer(d)
		defer t.Stop()
		due = t.C()
	}
	select {
	case <-due:
	case <-signal[0]:
	case <-signal[1]:
	case <-signal[2]:
	case <-ctx.Done():
		return false
	}
	return true
}

// Go runs f beside the caller, who says what ends it.
func Go(c Clock, f func()) {
	if own, ok := c.(Cooperative); ok {
		own.Go(f)
		return
	}
	go f() // ends as the caller says
}
