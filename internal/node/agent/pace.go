package agent

import (
	"math"
	"time"
)

// A lone urgent update waits for nothing. When many come, each message costs an entry of control's log, so they wait
// for each other: the longer, the more of them there are, but not behind the last of them. What claims may wait for
// waits for none.
const (
	pushSpread    = time.Millisecond       // of waiting for each urgent update a second
	pushSpreadMin = 10 * time.Millisecond  // less is none
	pushSpreadMax = 400 * time.Millisecond // a job of 1,000 tasks at 500 a second: 8 messages
	pushLull      = 20 * time.Millisecond  // when no more come, what has come is sent
)

// pushRate counts updates, each less the older it is: it is near to how many came in the last second.
type pushRate struct {
	level float64
	at    time.Time
}

func (r *pushRate) decay(now time.Time) {
	r.level *= math.Exp(-now.Sub(r.at).Seconds())
	r.at = now
}

func (r *pushRate) count(now time.Time) {
	r.decay(now)
	r.level++
}

// spread is how long urgent updates wait for each other.
func (r *pushRate) spread(now time.Time) time.Duration {
	r.decay(now)
	d := min(time.Duration(r.level*float64(pushSpread)), pushSpreadMax)
	if d < pushSpreadMin {
		return 0
	}
	return d
}
