package learned

import (
	"errors"
	"time"

	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/fleet/provider"
)

// Cloud is what was learned of one cloud. Its owner calls the methods that tell what happened; whoever decides calls those
// that ask, which change nothing. Not for use by several goroutines at once.
type Cloud struct {
	seed     uint64
	caps     provider.Capabilities
	quotas   map[string]*quota
	cooling  map[string]*coolDown
	rates    map[provider.Call]*bucket
	calls    *bucket // of creates, however many machines they are about; nil = not limited
	boots    map[string]*histogram
	breakers map[string]*breaker
	creates  concurrency
	market   map[string]*interruptions
	stopped  string // why nothing can be bought at all (credentials), until stopEnds
	stopEnds time.Time
	stops    int
}

// New returns a Cloud that knows what the provider says of itself. The seed feeds jitter.
func New(seed uint64, caps provider.Capabilities) *Cloud {
	b := &Cloud{
		seed: seed, caps: caps, quotas: map[string]*quota{}, cooling: map[string]*coolDown{},
		rates: map[provider.Call]*bucket{}, boots: map[string]*histogram{}, breakers: map[string]*breaker{},
		creates: concurrency{limit: 8, slowStart: true}, market: map[string]*interruptions{},
	}
	b.caps.Batch = max(caps.Batch, 1)
	for _, c := range []provider.Call{provider.CallCreate, provider.CallDestroy, provider.CallList, provider.CallTag} {
		b.rates[c] = newBucket(caps.Rates[c])
	}
	if caps.Creates.PerSecond > 0 {
		b.calls = newBucket(caps.Creates)
	}
	return b
}

// Started notes that a call goes out; n is how many machines it is about.
func (b *Cloud) Started(now time.Time, call provider.Call, n int) {
	b.rates[call].take(now, n)
	if call == provider.CallCreate {
		b.creates.inFlight++
		if b.calls != nil {
			b.calls.take(now, 1)
		}
	}
}

// Done notes how a call ended; creates are told to Created instead.
func (b *Cloud) Done(now time.Time, call provider.Call, err error) {
	b.rates[call].result(now, err)
}

// Created notes how a create ended: got machines, used units of the quota group known to exist, those included.
func (b *Cloud) Created(now time.Time, o *fleet.Offering, template string, got int, used int64, err error) {
	b.createEnded(now, err)
	b.creates.done(err == nil)
	if got > 0 {
		b.quota(o.QuotaGroup).succeeded(used)
		b.succeeded(o)
		b.stops, b.stopped = 0, ""
	}
	b.quota(o.QuotaGroup).probing = false
	var e *provider.Error
	if err == nil || !errors.As(err, &e) {
		return
	}
	switch e.Kind {
	case provider.Quota:
		limit := e.Limit
		if e.Group != "" && e.Group != o.QuotaGroup { // the cloud's name for something else, such as all machines: its limit is not this group's
			limit = 0
		}
		q := b.quota(o.QuotaGroup)
		q.failed(now, used, limit, chance(b.seed, o.QuotaGroup, q.fails))
	case provider.Capacity:
		b.lacks(now, o, e.Scope)
	case provider.Config:
		b.breaker(o.Key, template).refuse(now, chance(b.seed, o.Key, 0), e.Message)
	case provider.Auth:
		b.stop(now, e.Error(), 30*time.Second, 10*time.Minute)
	case provider.Transient:
		b.stop(now, e.Error(), 200*time.Millisecond, 30*time.Second)
	case provider.RateLimited, provider.NotFound, provider.Ambiguous: // say nothing of the offering
	}
}

// createEnded tells the budgets how a create ended. Where calls and machines have a budget each, the cloud may
// not say which of them is spent: then it is the smaller one of calls, and the other is believed half.
func (b *Cloud) createEnded(now time.Time, err error) {
	machines := b.rates[provider.CallCreate]
	if b.calls == nil {
		machines.result(now, err)
		return
	}
	b.calls.result(now, err)
	if provider.KindOf(err) == provider.RateLimited && err != nil {
		machines.take(now, max(0, int(machines.level(now)/2)))
	}
}

// Unrecorded notes that intents could not be recorded: nothing may be created for a moment.
func (b *Cloud) Unrecorded(now time.Time, err error) {
	b.creates.done(true)
	b.stop(now, "intents can't be recorded: "+err.Error(), time.Second, time.Minute)
}

// stop keeps all creates back, longer each time until one succeeds.
func (b *Cloud) stop(now time.Time, why string, base, limit time.Duration) {
	if now.Before(b.stopEnds) {
		return
	}
	b.stopped, b.stopEnds = why, now.Add(backoff(base, limit, b.stops, chance(b.seed, "stop", b.stops)))
	b.stops++
}

// Destroyed notes that a machine of the quota group is gone: a reached quota is tried again.
func (b *Cloud) Destroyed(now time.Time, group string) {
	if q := b.quotas[group]; q != nil && q.retryAt.After(now) {
		q.retryAt = now
	}
}

// Booted notes how long a machine took from its create call to taking work.
func (b *Cloud) Booted(o *fleet.Offering, template string, took time.Duration) {
	for _, key := range bootKeys(o.Key, o.Type) {
		h := b.boots[key]
		if h == nil {
			h = &histogram{}
			b.boots[key] = h
		}
		h.Add(took)
	}
	b.breaker(o.Key, template).outcome(true)
}

// BootFailed notes that a machine did not come up in time.
func (b *Cloud) BootFailed(now time.Time, o *fleet.Offering, template string) {
	br := b.breaker(o.Key, template)
	br.outcome(false)
	br.trip(now, chance(b.seed, o.Key, br.opened))
}

// Ran notes how long a spot machine ran and whether the cloud took it back.
func (b *Cloud) Ran(offering string, d time.Duration, taken bool) {
	m := b.market[offering]
	if m == nil {
		m = &interruptions{}
		b.market[offering] = m
	}
	m.hours += d.Hours()
	if taken {
		m.taken++
	}
}

// Tokens returns how many machines calls of the kind may be about now.
func (b *Cloud) Tokens(now time.Time, call provider.Call) int {
	if call == provider.CallCreate && b.calls != nil && b.calls.whole(now) <= 0 {
		return 0
	}
	return b.rates[call].whole(now)
}

// TokensAt returns when the next call of the kind may go out after spent more tokens.
func (b *Cloud) TokensAt(now time.Time, call provider.Call, spent int) time.Time {
	at := b.rates[call].next(now, spent)
	if call == provider.CallCreate && b.calls != nil {
		at = later(at, b.calls.next(now, 0))
	}
	return at
}

// CreateRoom returns how many create calls may be begun.
func (b *Cloud) CreateRoom(now time.Time) int {
	if b.calls == nil {
		return b.creates.room()
	}
	return max(0, min(b.creates.room(), b.calls.whole(now)))
}

// Batch returns how many machines a create may ask for.
func (b *Cloud) Batch() int { return b.caps.Batch }

// Blocked says why nothing of the offering can be bought now, and until when; "" if it can.
func (b *Cloud) Blocked(now time.Time, o *fleet.Offering, template string) (why string, until time.Time) {
	if b.stopped != "" && now.Before(b.stopEnds) {
		return b.stopped, b.stopEnds
	}
	if c := b.cools(now, o); c != nil {
		return "no capacity of " + c.what, c.until
	}
	if br := b.breakers[o.Key+"\x00"+template]; br != nil && br.open(now) {
		return br.why, br.until
	}
	return "", time.Time{}
}

// Probing reports that the offering failed lately, so that only few are to be tried at once.
func (b *Cloud) Probing(o *fleet.Offering, template string) bool {
	if br := b.breakers[o.Key+"\x00"+template]; br != nil && br.opened > 0 {
		return true
	}
	for _, key := range coolKeys(o) {
		if c := b.cooling[key]; c != nil && c.fails > 0 {
			return true
		}
	}
	return false
}

// quota returns what is known of the group's quota; a new group has no limit until a create fails.
func (b *Cloud) quota(group string) *quota {
	q := b.quotas[group]
	if q == nil {
		q = &quota{limit: unlimited}
		b.quotas[group] = q
	}
	return q
}

// breaker returns the breaker of an offering with a template: a broken image must not block a good one.
func (b *Cloud) breaker(offering, template string) *breaker {
	key := offering + "\x00" + template
	br := b.breakers[key]
	if br == nil {
		br = &breaker{}
		b.breakers[key] = br
	}
	return br
}
