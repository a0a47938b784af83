package learned

import (
	"strings"
	"time"

	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/fleet/provider"
)

// coolDown keeps from asking for what the cloud lacked a moment ago.
type coolDown struct {
	what  string
	until time.Time
	last  time.Time
	fails int
}

// coolKeys are what a lack can be about, narrow to wide.
func coolKeys(o *fleet.Offering) [5]string {
	return [5]string{
		"offering " + o.Key, "type " + o.Type + " " + o.Market, "zone " + o.Zone + " " + o.Market,
		"family " + o.Family + " " + o.Market, "anything",
	}
}

var scopeIndex = map[provider.Scope]int{
	provider.ScopeOffering: 0, provider.ScopeType: 1, provider.ScopeZone: 2, provider.ScopeFamily: 3, provider.ScopeAll: 4,
}

// cools returns the widest cool-down that the offering is under.
func (b *Cloud) cools(now time.Time, o *fleet.Offering) (worst *coolDown) {
	if len(b.cooling) == 0 {
		return nil
	}
	for _, key := range coolKeys(o) {
		if c := b.cooling[key]; c != nil && now.Before(c.until) && (worst == nil || c.until.After(worst.until)) {
			worst = c
		}
	}
	return worst
}

// lacks notes that the cloud has no machine of the offering, or of what the scope names. Failures of several offerings
// may show that more than these lack capacity.
func (b *Cloud) lacks(now time.Time, o *fleet.Offering, scope provider.Scope) {
	keys := coolKeys(o)
	b.cool(now, keys[scopeIndex[scope]])
	if scope == provider.ScopeOffering || scope == "" {
		b.widen(now, o)
	}
}

// cool keeps the key from being asked for: half a minute at first, then longer up to a quarter of an hour. Failures
// while it is cooling do not count, as their calls began before.
func (b *Cloud) cool(now time.Time, key string) {
	c := b.cooling[key]
	if c == nil {
		c = &coolDown{what: key}
		b.cooling[key] = c
	}
	c.last = now
	if now.Before(c.until) {
		return // of the same burst of calls
	}
	c.until = now.Add(backoff(30*time.Second, 15*time.Minute, c.fails, chance(b.seed, key, c.fails)))
	c.fails++
}

// widen cools the type once three of its zones lacked it within two minutes.
func (b *Cloud) widen(now time.Time, o *fleet.Offering) {
	const within = 2 * time.Minute
	zones := 0
	prefix, suffix := "offering "+o.Provider+"/"+o.Type+"/", "/"+o.Market
	for key, c := range b.cooling { // counting only: the order does not matter
		zone, isType := strings.CutPrefix(key, prefix)
		zone, isMarket := strings.CutSuffix(zone, suffix)
		if isType && isMarket && zone != "" && now.Sub(c.last) <= within {
			zones++
		}
	}
	if zones >= 3 {
		b.cool(now, coolKeys(o)[1])
	}
}

// succeeded forgets the failures of everything that the offering belongs to.
func (b *Cloud) succeeded(o *fleet.Offering) {
	if len(b.cooling) == 0 {
		return
	}
	for _, key := range coolKeys(o) {
		delete(b.cooling, key)
	}
}
