package learned

import (
	"math"
	"time"
)

const unlimited = math.MaxInt64 / 4

// quota is the belief about one group's limit. It falls to what was in use when the cloud refused, and grows when the cloud
// gives at or above it (additive increase, multiplicative decrease).
type quota struct {
	limit   int64
	fails   int
	retryAt time.Time
	probing bool // one create above the limit is under way
}

// left returns how many machines of units each may be asked for while used units are in use.
func (q *quota) left(now time.Time, used, units int64) int64 {
	if n := (q.limit - used) / units; n > 0 {
		return n
	}
	if q.limit != unlimited && !q.probing && !now.Before(q.retryAt) {
		return 1
	}
	return 0
}

// failed notes a create that the quota refused. The limit is what the cloud told, or else what was in use then. It is
// tried again after one to fifteen minutes, as somebody may raise it.
func (q *quota) failed(now time.Time, used, told int64, jitter float64) {
	again := !now.Before(q.retryAt)
	q.limit = min(used, unlimited)
	if told > 0 {
		q.limit = told
	}
	if !again {
		return // of the same burst of calls
	}
	q.retryAt = now.Add(backoff(time.Minute, 15*time.Minute, q.fails, jitter))
	q.fails++
}

// succeeded notes a create within the quota. One beyond the assumed limit shows that it is higher, so it grows in small
// steps.
func (q *quota) succeeded(used int64) {
	if q.limit == unlimited || used < q.limit {
		return
	}
	q.fails = 0
	q.limit = used + max(1, used/20)
}

// Room is what is believed to be left of a quota group.
type Room struct {
	Units int64     // that may be asked for; unlimited is a quarter of the greatest integer
	Probe bool      // the limit is reached, but one machine may be asked for, as it may have risen
	Over  int64     // units in use beyond the limit
	Again time.Time // when the limit is tried anew, if it is reached; zero while no limit was met
}

// Room returns what is left of a group of which used units are in use.
func (b *Cloud) Room(now time.Time, group string, used int64) Room {
	q := b.quotas[group]
	if q == nil {
		return Room{Units: unlimited}
	}
	r := Room{Units: q.left(now, used, 1), Over: max(0, used-q.limit)}
	r.Probe = r.Units == 1 && q.limit-used < 1
	if r.Units <= 0 {
		r.Again = q.retryAt
	}
	return r
}

// QuotaBelief is what is believed of a group, for people.
type QuotaBelief struct {
	Group   string
	Limit   int64
	RetryAt time.Time
}

// Quota returns the belief about a group; ok is false while no limit was met.
func (b *Cloud) Quota(group string) (belief QuotaBelief, ok bool) {
	q := b.quotas[group]
	if q == nil || q.limit == unlimited {
		return QuotaBelief{}, false
	}
	return QuotaBelief{group, q.limit, q.retryAt}, true
}
