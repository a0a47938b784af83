package agent

import (
	"math"
	"time"
)

// A lone urgent update waits for nothing. When many are to come (allocations that start or stop) or have just come,
// each message costs an entry of control's log, so they wait for each other, but not behind the last of them. What
// claims may wait for waits for none.
const (
	pushFew       = 8                      // allocations on their way that are not many
	pushCalm      = 15                     // updates in a tenth of a second that are not many
	pushSpread    = 5 * time.Millisecond   // of waiting for each beyond them
	pushSpreadMax = 400 * time.Millisecond // a job of 1,000 tasks at 500 a second: 8 messages
	pushLull      = 20 * time.Millisecond  // when no more come, what has come is sent
)

// pushRate counts updates, each less the older it is: it is near to how many came in the last tenth of a second.
type pushRate struct {
	level float64
	at    time.Time
}

func (r *pushRate) decay(now time.Time) {
	r.level *= math.Exp(-10 * now.Sub(r.at).Seconds())
	r.at = now
}

func (r *pushRate) count(now time.Time) {
	r.decay(now)
	r.level++
}

// spread is how long urgent updates wait for each other while so many allocations are on their way.
func (r *pushRate) spread(now time.Time, moving int) time.Duration {
	r.decay(now)
	many := max(r.level-pushCalm, float64(moving-pushFew), 0)
	return min(time.Duration(many*float64(pushSpread)), pushSpreadMax)
}
