package throttle

import (
	"hash/maphash"
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	shards = 16
	// MaxKeys is about how many keys a Limiter remembers at most. Those that nobody asked for longest are forgotten first, which gives
	// them a full bucket again.
	MaxKeys = 1 << 16
)

// Limiter has a bucket for each key. It is safe for use by several goroutines.
type Limiter[K comparable] struct {
	rate  rate.Limit
	burst int
	seed  maphash.Seed
	parts [shards]part[K]
}

// part are the buckets of some keys: those that were asked for since the last turn, and those before.
type part[K comparable] struct {
	mu          sync.Mutex
	young, aged map[K]*rate.Limiter // guarded by mu
}

// New returns a limiter of so many a second, whose buckets hold burst at most; burst 0 is twice the rate, and 1 at least.
func New[K comparable](perSecond float64, burst int) *Limiter[K] {
	if burst == 0 {
		burst = max(1, int(math.Ceil(2*perSecond)))
	}
	return &Limiter[K]{rate: rate.Limit(perSecond), burst: burst, seed: maphash.MakeSeed()}
}

// Admit takes one of the key's bucket. If there is none, it takes nothing and returns how long it is until there is one.
func (l *Limiter[K]) Admit(key K, now time.Time) (wait time.Duration, ok bool) {
	p := &l.parts[maphash.Comparable(l.seed, key)%shards]
	p.mu.Lock()
	bucket := p.young[key]
	if bucket == nil {
		bucket = l.renew(p, key)
	}
	p.mu.Unlock()
	if bucket.AllowN(now, 1) {
		return 0, true
	}
	missing := 1 - bucket.TokensAt(now)
	return max(time.Duration(missing/float64(l.rate)*float64(time.Second)), 0), false
}

// renew returns the bucket of a key that is not young, and makes it so. Where too many are, the aged are forgotten first. p.mu is held.
func (l *Limiter[K]) renew(p *part[K], key K) *rate.Limiter {
	bucket := p.aged[key]
	if bucket == nil {
		bucket = rate.NewLimiter(l.rate, l.burst)
	}
	if p.young == nil || len(p.young) >= MaxKeys/shards/2 {
		p.aged, p.young = p.young, map[K]*rate.Limiter{}
	}
	p.young[key] = bucket
	return bucket
}
