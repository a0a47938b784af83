package agent

import (
	"math"
	"time"
)

// Each message to control costs an entry of its log, so urgent updates are sent together where many are to be expected. That is
// so while many allocations are starting or stopping, or when many updates have just come. They are sent as soon as no more
// come. A single urgent update is sent at once, and so is each update of a warm pool, as claims may wait for it.
const (
	pushFew       = 8                      // allocations on their way that are not many
	pushCalm      = 15                     // updates in a tenth of a second that are not many
	pushSpread    = 5 * time.Millisecond   // of waiting for each beyond them
	pushSpreadMax = 400 * time.Millisecond // a job of 1,000 tasks at 500 a second: 8 messages
	pushLull      = 20 * time.Millisecond  // when no more come, what has come is sent
)

// pushRate estimates how many updates came in the last tenth of a second. The weight of each decays with its age.
type pushRate struct {
	level float64
	at    time.Time
}

// decay brings the level up to now. The time constant is a tenth of a second, hence the factor 10.
func (r *pushRate) decay(now time.Time) {
	r.level *= math.Exp(-10 * now.Sub(r.at).Seconds())
	r.at = now
}

// count adds one update.
func (r *pushRate) count(now time.Time) {
	r.decay(now)
	r.level++
}

// spread returns how long urgent updates wait for others. moving is the number of allocations that start or stop.
func (r *pushRate) spread(now time.Time, moving int) time.Duration {
	r.decay(now)
	many := max(r.level-pushCalm, float64(moving-pushFew), 0)
	return min(time.Duration(many*float64(pushSpread)), pushSpreadMax)
}
