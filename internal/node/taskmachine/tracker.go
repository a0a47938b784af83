package taskmachine

import (
	"time"

	"drover"
)

// Tracker counts restarts within the policy's interval (reference/nomad.md section 1.3). It is kept in the Status and
// is as pure as the rest.
type Tracker struct {
	Count int
	Since time.Time
}

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
