package taskmachine

import (
	"fmt"
	"time"

	"github.com/drover-project/drover"
)

// Tracker counts restarts within the policy's interval. It is kept in the Status and
// is as pure as the rest.
type Tracker struct {
	Count int
	Since time.Time
	Quick int // ends within drover.QuickEnd of the start, since it last lived for quickForget
}

// The brake makes storms of restarts impossible whatever the policy says: a task that ends at once again and again waits
// for at least a delay that doubles each time. Usual policies wait for longer by themselves.
const (
	quickFree     = 5 // ends at once that are nothing special
	quickDelay    = time.Second
	quickMaxDelay = 30 * time.Second
	quickForget   = 10 * time.Second // one that lived for so long has shown that it can
)

// verdict is what becomes of a task that ended without being killed.
type verdict struct {
	restart bool
	failed  bool // not restarted, and that is a failure
	delay   time.Duration
	reason  string
}

// Reasons as Nomad words them.
const (
	reasonNoRestarts = "Policy allows no restarts"
	reasonUnrecover  = "Error was unrecoverable"
	reasonWithin     = "Restart within policy"
	reasonDelay      = "Exceeded allowed attempts, applying a delay"
	reasonExceeded   = "Exceeded allowed attempts"
	reasonPool       = "A warm runner is not started again"
)

// lived counts whether a task that lived for so long ended at once, and reports it.
func (t *Tracker) lived(life time.Duration) bool {
	switch {
	case life >= quickForget:
		t.Quick = 0
	case life < drover.QuickEnd:
		t.Quick++
		return true
	}
	return false
}

// slow lets a restart after an end at once wait for the brake's delay, if that is longer than the policy's.
func (t Tracker) slow(v verdict) verdict {
	if !v.restart || t.Quick <= quickFree {
		return v
	}
	if least := min(quickDelay<<min(t.Quick-quickFree-1, 5), quickMaxDelay); least > v.delay {
		v.delay = least
		v.reason = fmt.Sprintf("%s; slowed: it ended within a second of its start %d times in a row", v.reason, t.Quick)
	}
	return v
}

// decide counts one end and says what follows. jitter is in [0, 1). unrecoverable is for errors of the start.
func (t Tracker) decide(p Policy, once, success, unrecoverable bool, jitter float64, now time.Time) (Tracker, verdict) {
	if success && once {
		return t, verdict{}
	}
	if p.Attempts == 0 {
		return t, verdict{failed: true, reason: reasonNoRestarts}
	}
	if t.Since.IsZero() || now.After(t.Since.Add(p.Interval)) {
		t = Tracker{Since: now}
	}
	t.Count++
	if unrecoverable {
		return t, verdict{failed: true, reason: reasonUnrecover}
	}
	if t.Count > p.Attempts {
		if p.Mode == drover.RestartModeDelay {
			return t, verdict{restart: true, delay: t.Since.Add(p.Interval).Sub(now), reason: reasonDelay}
		}
		return t, verdict{failed: true, reason: reasonExceeded}
	}
	delay := p.Delay + time.Duration(jitter*0.25*float64(p.Delay))
	return t, verdict{restart: true, delay: delay, reason: reasonWithin}
}
