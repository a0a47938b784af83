package pool

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/fleet/scaler"
)

// How long a pool may leave work without an answer before the next pool is offered it.
const (
	shareSlow     = 3 * time.Second  // its creates wait for rate or concurrency
	shareUnlisted = 15 * time.Second // its cloud was not listed yet
)

// Sharing divides the work that waits for a node pool among the fleet's pools that serve it, whatever their providers, so that
// each piece is bought for once. The pool where it costs least buys it, and the next one what that one can't buy. What a pool
// has, or has bought, room for stays with it. One Sharing is shared by all cores; for use by several goroutines at once.
type Sharing struct {
	freed func() // told, without a lock, when work may be offered to another pool now

	mu        sync.Mutex
	nodePools map[string]*common // guarded by mu
}

// common is a node pool with its pools.
type common struct {
	mu      sync.Mutex
	sharers []*sharer // by name; the list never changes, what is in it is guarded by mu
	over    bool      // another one took its place; guarded by mu
}

// sharer is a pool as the others see it. Maps are by class.
type sharer struct {
	name      string
	template  string
	offerings []fleet.Offering     // that could be bought at its last turn
	covered   map[string]int       // pieces that it has room for
	declined  map[string]int       // pieces that it was offered and can't buy for
	since     map[string]time.Time // when it was first offered what it has not answered yet
}

// NewSharing returns a Sharing without pools. freed is told when work may be offered to another pool now.
func NewSharing(freed func()) *Sharing {
	return &Sharing{freed: freed, nodePools: map[string]*common{}}
}

// Set replaces the pools; those that retire buy nothing and have no share.
func (s *Sharing) Set(policies []*fleet.Policy) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.nodePools { // turns that are under way end first
		c.mu.Lock()
		c.over = true
		c.mu.Unlock()
	}
	next := map[string]*common{}
	for _, p := range policies {
		if p.Retiring {
			continue
		}
		c := next[p.NodePool]
		if c == nil {
			c = &common{}
			next[p.NodePool] = c
		}
		c.sharers = append(c.sharers, s.sharer(p))
	}
	for _, c := range next {
		slices.SortFunc(c.sharers, func(a, b *sharer) int { return cmp.Compare(a.name, b.name) })
	}
	s.nodePools = next
}

// sharer returns the pool's with what it has room for.
func (s *Sharing) sharer(p *fleet.Policy) *sharer {
	out := &sharer{
		name: p.Name, template: p.Template(), offerings: p.Offerings(), covered: map[string]int{}, declined: map[string]int{},
		since: map[string]time.Time{},
	}
	if c := s.nodePools[p.NodePool]; c != nil {
		if old := c.of(p.Name); old != nil {
			maps.Copy(out.covered, old.covered)
		}
	}
	return out
}

// lock returns the pool's node pool, locked, if it shares that with others; nil if it does not.
func (s *Sharing) lock(p *fleet.Policy) *common {
	if s == nil {
		return nil
	}
	for {
		s.mu.Lock()
		c := s.nodePools[p.NodePool]
		s.mu.Unlock()
		if c == nil || len(c.sharers) < 2 || c.of(p.Name) == nil {
			return nil
		}
		// Set may have replaced the node pool between the look-up and the lock: then the new one is looked up.
		if c.mu.Lock(); !c.over {
			return c
		}
		c.mu.Unlock()
	}
}

// of finds a sharer by its pool's name; nil if it has no share. It needs no lock, as the list never changes.
func (c *common) of(name string) *sharer {
	for _, s := range c.sharers {
		if s.name == name {
			return s
		}
	}
	return nil
}

// turn has a pool decide about its share of the demand, while no other pool of the node pool decides. wake is when what it left
// may be offered to others; zero = not because of time.
func (s *Sharing) turn(in scaler.Input, trouble string, decide func(scaler.Input) scaler.Output) (out scaler.Output, wake time.Time) {
	c := s.lock(in.Policy)
	if c == nil {
		return decide(in), time.Time{}
	}
	me := c.of(in.Policy.Name)
	freed := me.sells(&in)
	all := in.Demand
	in.Demand = c.part(me, all)
	if me.forget(all, in.Demand) {
		freed = true
	}
	out = decide(in)
	if me.answer(&in, &out, trouble) {
		freed = true
	}
	wake = me.patience(&in)
	c.mu.Unlock()
	if freed && s.freed != nil {
		s.freed()
	}
	return out, wake
}

// peek returns the pool's share of the demand, for dry runs.
func (s *Sharing) peek(p *fleet.Policy, demand []fleet.DemandClass) []fleet.DemandClass {
	c := s.lock(p)
	if c == nil {
		return demand
	}
	defer c.mu.Unlock()
	return c.part(c.of(p.Name), demand)
}

// sells notes what the pool can buy now, and reports whether that changed.
func (s *sharer) sells(in *scaler.Input) (changed bool) {
	var now []fleet.Offering
	if !in.Policy.PauseCreates {
		for i := range in.Offerings {
			if why, _ := in.Beliefs.Blocked(in.Now, &in.Offerings[i], in.Template); why == "" {
				now = append(now, in.Offerings[i])
			}
		}
	}
	changed = len(now) != len(s.offerings) || s.template != in.Template
	s.offerings, s.template = now, in.Template
	return changed
}

// price is the least that a piece of the class costs the pool; ok is false if it can't buy for it.
func (s *sharer) price(d *fleet.DemandClass) (least float64, ok bool) {
	for i := range s.offerings {
		if p, fits := scaler.PricePerPiece(&s.offerings[i], d, s.name, s.template); fits && (!ok || p < least) {
			least, ok = p, true
		}
	}
	return least, ok
}

// part is what the pool is offered: what it has room for, and of what nobody has room for that which the pools where
// it costs less can't buy for. What no pool can buy for is shown to all.
func (c *common) part(me *sharer, demand []fleet.DemandClass) []fleet.DemandClass {
	var out []fleet.DemandClass
	for i := range demand {
		d := demand[i]
		left := d.Count
		for _, other := range c.sharers {
			if other != me {
				left -= other.covered[d.Name]
			}
		}
		if d.Count = min(left, me.covered[d.Name]+c.offered(me, &d, left-me.covered[d.Name])); d.Count > 0 {
			out = append(out, d)
		}
	}
	return out
}

// offered returns how many of the pieces that have no place the pool may buy for.
func (c *common) offered(me *sharer, d *fleet.DemandClass, rest int) int {
	mine, able := me.price(d)
	for _, other := range c.sharers {
		if other == me {
			continue
		}
		price, can := other.price(d)
		if can && (!able || price < mine || price == mine && other.name < me.name) { // equal prices are equal
			rest = min(rest, other.declined[d.Name])
		}
	}
	return max(rest, 0)
}

// forget drops what the pool noted about work that waits no more. It also drops what the pool has room for of work that others
// have room for altogether: it is asked again when they don't. Others look after theirs: they may know of newer work.
func (s *sharer) forget(demand, mine []fleet.DemandClass) (freed bool) {
	waits, asked := make(map[string]bool, len(demand)), make(map[string]bool, len(mine))
	for i := range demand {
		waits[demand[i].Name] = true
	}
	for i := range mine {
		asked[mine[i].Name] = true
	}
	maps.DeleteFunc(s.covered, func(name string, n int) bool {
		freed = freed || !asked[name] && waits[name] && n > 0
		return !asked[name]
	})
	maps.DeleteFunc(s.declined, func(name string, _ int) bool { return !waits[name] })
	maps.DeleteFunc(s.since, func(name string, _ time.Time) bool { return !waits[name] })
	return freed
}

// answer notes what the pool decided, and reports whether others may be offered more than before.
func (s *sharer) answer(in *scaler.Input, out *scaler.Output, trouble string) (freed bool) {
	// An answer is firm if the pool could have bought what it wanted. A cloud in trouble buys nothing, which is firm
	// too.
	firm := trouble != "" || in.Listed && out.Deferred == 0
	said := make(map[string]*scaler.Waiting, len(out.Waiting))
	for i := range out.Waiting {
		said[out.Waiting[i].Class] = &out.Waiting[i]
	}
	for i := range in.Demand {
		d := &in.Demand[i]
		covered := 0
		if w := said[d.Name]; w != nil {
			covered = w.Placed + w.Bought
		}
		freed = freed || covered < s.covered[d.Name]
		s.covered[d.Name] = covered
		left := d.Count - covered
		if left <= 0 {
			delete(s.since, d.Name)
			s.declined[d.Name] = 0
			continue
		}
		if s.since[d.Name].IsZero() {
			s.since[d.Name] = in.Now
		}
		if firm || !in.Now.Before(s.since[d.Name].Add(patienceWith(in))) {
			freed = freed || left > s.declined[d.Name]
			s.declined[d.Name] = left
		}
	}
	return freed
}

// patienceWith is how long the pool may leave offered work unanswered, before the next pool is offered it.
func patienceWith(in *scaler.Input) time.Duration {
	if !in.Listed {
		return shareUnlisted
	}
	return shareSlow
}

// patience returns when the pool's silence about work counts as an answer.
func (s *sharer) patience(in *scaler.Input) (wake time.Time) {
	for name, at := range s.since {
		if t := at.Add(patienceWith(in)); s.declined[name] == 0 && t.After(in.Now) && (wake.IsZero() || t.Before(wake)) {
			wake = t
		}
	}
	return wake
}
