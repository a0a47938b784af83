package learned

import (
	"errors"
	"math"
	"time"

	"github.com/drover-project/drover/internal/fleet/provider"
)

// bucket is the budget of one kind of call: each kind has its own, so that creates never starve destroys.
type bucket struct {
	rate, known, burst float64
	tokens             float64
	at                 time.Time
	paused             time.Time
	clean              time.Time // since when nothing was refused; also when the rate last grew
}

// newBucket returns a full bucket; a rate that is not known is taken as 50 calls a second.
func newBucket(r provider.Rate) *bucket {
	if r.PerSecond == 0 {
		r = provider.Rate{PerSecond: 50, Burst: 200}
	}
	r.Burst = max(r.Burst, 1)
	return &bucket{rate: r.PerSecond, known: r.PerSecond, burst: r.Burst, tokens: r.Burst}
}

// level is how many tokens there are now; below 0 they are owed.
func (b *bucket) level(now time.Time) float64 {
	if b.at.IsZero() {
		return b.tokens
	}
	return min(b.burst, b.tokens+max(0, now.Sub(b.at).Seconds())*b.rate)
}

// whole is how many calls may begin now. The small addend makes up for rounding of floats.
func (b *bucket) whole(now time.Time) int {
	if now.Before(b.paused) {
		return 0
	}
	return int(b.level(now) + 1e-9)
}

// next is when one more call may begin after those that were spent but not taken yet.
func (b *bucket) next(now time.Time, spent int) time.Time {
	missing := 1 + float64(spent) - b.level(now)
	at := now
	if missing > 0 {
		at = now.Add(time.Duration(math.Ceil(missing / b.rate * float64(time.Second))))
	}
	if at.Before(b.paused) {
		return b.paused
	}
	return at
}

// take spends n tokens, also if there are fewer.
func (b *bucket) take(now time.Time, n int) {
	b.tokens, b.at = b.level(now)-float64(n), now
}

// result adapts the rate to how a call ended. A refusal for the rate halves it and pauses; calls that are accepted let
// it grow again.
func (b *bucket) result(now time.Time, err error) {
	var e *provider.Error
	if errors.As(err, &e) && e.Kind == provider.RateLimited {
		b.tokens, b.at = min(b.level(now), 0), now
		if !now.Before(b.paused) { // once a burst of calls
			b.rate = max(b.rate/2, 0.05)
		}
		b.paused = later(b.paused, now.Add(200*time.Millisecond))
		if e.RetryAt.Before(now.Add(10 * time.Minute)) { // a lying cloud must not stop us for days
			b.paused = later(b.paused, e.RetryAt)
		}
		b.clean = b.paused
		return
	}
	if b.clean.IsZero() {
		b.clean = now
	}
	if now.Sub(b.clean) >= 10*time.Second && b.rate < b.known {
		b.tokens, b.at = b.level(now), now
		b.rate, b.clean = min(b.rate*1.1, b.known), now
	}
}

// later returns the later of the two times.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// concurrency bounds the creates in flight: it doubles a round until the first error, then grows by one a round.
type concurrency struct {
	limit     float64
	slowStart bool
	inFlight  int
}

// room is how many more calls may be in flight.
func (c *concurrency) room() int { return max(0, int(c.limit)-c.inFlight) }

// done ends a call and adapts the limit as TCP does: it doubles in a slow start until the first failure, then grows by
// one for a whole round of calls.
func (c *concurrency) done(ok bool) {
	c.inFlight = max(0, c.inFlight-1)
	switch {
	case !ok:
		c.slowStart = false
		c.limit = max(4, c.limit*0.9) // one failed call of many is not yet a sign of overload
	case c.slowStart:
		c.limit = min(c.limit+1, 256)
	default:
		c.limit = min(c.limit+1/c.limit, 256)
	}
}
