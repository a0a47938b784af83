package learned

import (
	"fmt"
	"time"
)

// breaker stops buying what does not boot: open after three failures of ten if they are more than half; then one probe
// a back-off.
type breaker struct {
	failed [10]bool
	n      int
	opened int // times in a row
	until  time.Time
	why    string
}

// outcome counts a boot that worked or did not. The first success after the breaker was open forgets all failures.
func (b *breaker) outcome(ok bool) {
	b.failed[b.n%len(b.failed)] = !ok
	b.n++
	if ok && b.opened > 0 {
		*b = breaker{}
	}
}

// fails returns how many of the last boots failed, and how many are known.
func (b *breaker) fails() (fails, of int) {
	of = min(b.n, len(b.failed))
	for _, f := range b.failed[:of] {
		if f {
			fails++
		}
	}
	return fails, of
}

// trip opens the breaker if most of the last boots failed, three at least; each time for longer, from one minute up to
// thirty.
func (b *breaker) trip(now time.Time, jitter float64) {
	fails, of := b.fails()
	if fails < 3 || fails*2 <= of || now.Before(b.until) {
		return
	}
	b.why = fmt.Sprintf("%d of the last %d did not boot", fails, of)
	b.until = now.Add(backoff(time.Minute, 30*time.Minute, b.opened, jitter))
	b.opened++
}

// refuse opens it at once: the cloud said that the request can't work.
func (b *breaker) refuse(now time.Time, jitter float64, message string) {
	if now.Before(b.until) {
		return
	}
	b.why = "refused: " + message
	b.until = now.Add(backoff(5*time.Minute, time.Hour, b.opened, jitter))
	b.opened++
}

// open reports whether nothing may be bought now.
func (b *breaker) open(now time.Time) bool { return now.Before(b.until) }
