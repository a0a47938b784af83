package scaler

import (
	"math"
	"time"
)

const unlimited = math.MaxInt64 / 4

// quota is the belief about one group's limit: it falls to what was in use when the cloud refused, and grows when the
// cloud gives at or above it (additive increase, multiplicative decrease).
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

func (q *quota) succeeded(used int64) {
	if q.limit == unlimited || used < q.limit {
		return
	}
	q.fails = 0
	q.limit = used + max(1, used/20)
}

// QuotaBelief is what is believed of a group, for people.
type QuotaBelief struct {
	Group   string
	Limit   int64
	RetryAt time.Time
}

// Quota returns the belief about a group; ok is false while no limit was met.
func (b *Beliefs) Quota(group string) (belief QuotaBelief, ok bool) {
	q := b.quotas[group]
	if q == nil || q.limit == unlimited {
		return QuotaBelief{}, false
	}
	return QuotaBelief{group, q.limit, q.retryAt}, true
}
