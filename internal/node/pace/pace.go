package pace

import (
	"math"
	"time"
)

// Urgent updates are sent together where many are to be expected. That is so while many allocations are starting or stopping, or when many
// updates have just come.
const (
	few       = 8                      // allocations on their way that are not many
	calm      = 15                     // updates in a tenth of a second that are not many
	spread    = 5 * time.Millisecond   // of waiting for each beyond them
	spreadMax = 400 * time.Millisecond // a job of 1,000 tasks at 500 a second: 8 messages
)

// Rate estimates how many updates came in the last tenth of a second. The weight of each decays with its age.
type Rate struct {
	level float64
	at    time.Time
}

// decay brings the level up to now. The time constant is a tenth of a second, hence the factor 10.
func (r *Rate) decay(now time.Time) {
	r.level *= math.Exp(-10 * now.Sub(r.at).Seconds())
	r.at = now
}

// Count adds one update.
func (r *Rate) Count(now time.Time) {
	r.decay(now)
	r.level++
}

// Spread returns how long urgent updates wait for others. moving is the number of allocations that start or stop.
func (r *Rate) Spread(now time.Time, moving int) time.Duration {
	r.decay(now)
	many := max(r.level-calm, float64(moving-few), 0)
	return min(time.Duration(many*float64(spread)), spreadMax)
}
