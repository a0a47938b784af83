package sim

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/fleet/provider"
	"github.com/drover-project/drover/internal/minheap"
)

// Cloud is the simulated cloud. Time only moves forward from call to call. Not for use by several goroutines at once.
type Cloud struct {
	cfg      Config
	rng      *rand.Rand
	machines []*machine // in the order of their creation, without those that are forgotten
	byID     map[string]*machine
	byIntent map[string]*machine
	batches  map[provider.Batch]int // that were made, where machines of one create share user data, and how much of each
	calls    *bucket                // of creates, however many machines they are about; nil = not limited
	used     map[string]int64
	supply   map[string]*supply
	buckets  map[provider.Call]*bucket
	happen   *minheap.Heap[Happening]
	seq      int
	billed   float64 // of machines that ended
	rate     float64 // per hour, of those that run
	running  int
	made     int                   // machines that there ever were
	Calls    map[provider.Call]int // how many of each kind were made
}

// machine is one that was created.
type machine struct {
	provider.Machine
	offering *fleet.Offering
	price    float64
	ended    time.Time
	booted   bool
	zombie   bool // survives the next Destroy
	hidden   bool // not in lists for some time
}

// supply is whether an offering can be had.
type supply struct {
	offering fleet.Offering
	on       bool
	flips    time.Time
}

type bucket struct {
	rate   provider.Rate
	tokens float64
	at     time.Time
}

// Happening is something that happens to a machine by itself.
type Happening struct {
	At     time.Time
	Kind   string // "booted", "notice", "taken", "died"
	ID     string
	Intent string
	Until  time.Time // of a notice
	seq    int
}

// NewCloud returns an empty cloud.
func NewCloud(cfg Config) *Cloud {
	c := &Cloud{
		cfg: cfg.withDefaults(), rng: rand.New(rand.NewPCG(cfg.Seed, 77)), happen: minheap.New(sooner, nil),
		byID: map[string]*machine{}, byIntent: map[string]*machine{}, batches: map[provider.Batch]int{},
		used: map[string]int64{}, supply: map[string]*supply{}, buckets: map[provider.Call]*bucket{}, Calls: map[provider.Call]int{},
	}
	for _, o := range cfg.Offerings {
		c.supply[o.Key] = &supply{offering: o, on: true}
	}
	for call, r := range cfg.Caps.Rates {
		c.buckets[call] = &bucket{rate: r, tokens: r.Burst}
	}
	if r := cfg.Caps.Creates; r.PerSecond > 0 {
		c.calls = &bucket{rate: r, tokens: r.Burst}
	}
	return c
}

// latency is how long a call takes.
func (c *Cloud) latency(now time.Time) time.Duration {
	if c.cfg.mode(now) == ModeHangs || c.cfg.Hangs > 0 && c.rng.Float64() < c.cfg.Hangs {
		return time.Minute
	}
	return time.Duration(float64(c.cfg.Latency) * (0.5 + c.rng.Float64()))
}

// begin is what may go wrong before anything is done.
func (c *Cloud) begin(now time.Time, call provider.Call, n int) error {
	c.Calls[call]++
	if call == provider.CallCreate {
		if err := c.calls.take(now, 1); err != nil {
			return err
		}
	}
	if err := c.buckets[call].take(now, n); err != nil {
		return err
	}
	if c.cfg.mode(now) == ModeFails || c.cfg.Errors > 0 && c.rng.Float64() < c.cfg.Errors {
		return &provider.Error{Kind: provider.Transient, Message: "InternalError"}
	}
	return nil
}

// take takes tokens. Errors: RateLimited.
func (b *bucket) take(now time.Time, n int) error {
	if b == nil {
		return nil
	}
	if !b.at.IsZero() {
		b.tokens = min(b.rate.Burst, b.tokens+now.Sub(b.at).Seconds()*b.rate.PerSecond)
	}
	b.at = now
	if b.tokens < float64(n)-1e-6 {
		wait := time.Duration((float64(n) - b.tokens) / b.rate.PerSecond * float64(time.Second))
		return &provider.Error{Kind: provider.RateLimited, RetryAt: now.Add(wait), Message: "RequestLimitExceeded"}
	}
	b.tokens -= float64(n)
	return nil
}

// after may lose the answer of what was done.
func (c *Cloud) after(now time.Time) error {
	if c.cfg.mode(now) == ModeHangs || c.cfg.Lost > 0 && c.rng.Float64() < c.cfg.Lost {
		return &provider.Error{Kind: provider.Ambiguous, Message: "the connection was cut"}
	}
	return nil
}

// Create makes machines and says how long the call takes.
func (c *Cloud) Create(now time.Time, req *provider.Request) (made []provider.Machine, took time.Duration, err error) {
	took = c.latency(now)
	if err := c.begin(now, provider.CallCreate, len(req.Intents)); err != nil {
		return nil, took, err
	}
	s := c.supply[req.Offering.Key]
	if s == nil {
		return nil, took, &provider.Error{Kind: provider.Config, Message: "no such offering: " + req.Offering.Key}
	}
	var stop error
	if b, _, ok := provider.BatchOf(req.Intents[0].ID); ok && c.cfg.Caps.Shared {
		made, stop = c.batch(now, s, req, b)
		if err := c.after(now); err != nil {
			return nil, took, err
		}
		return made, took, stop
	}
	for _, in := range req.Intents {
		m := c.byIntent[in.ID]
		if m == nil || !c.cfg.Caps.Idempotent {
			if stop = c.refuses(now, s); stop != nil {
				break
			}
			m = c.make(now, s, req, in)
		}
		made = append(made, m.Machine)
	}
	if err := c.after(now); err != nil {
		return nil, took, err
	}
	return made, took, stop
}

// batch makes as many machines of a batch as there are to be had, in one go and for good: who asks again, for whichever
// of them, gets the same ones. Their own tags they have only when they are given them.
func (c *Cloud) batch(now time.Time, s *supply, req *provider.Request, b provider.Batch) (made []provider.Machine, err error) {
	if _, again := c.batches[b]; !again {
		tags := map[string]string{fleet.TagBatch: b.String()}
		n := 0
		for ; n < b.Size; n++ {
			if err := c.refuses(now, s); err != nil {
				if n == 0 {
					return nil, err
				}
				break
			}
			c.make(now, s, req, provider.Intent{ID: b.Intent(n), Tags: tags})
		}
		c.batches[b] = n
	}
	for k := range c.batches[b] {
		made = append(made, c.byIntent[b.Intent(k)].Machine)
	}
	for _, in := range req.Intents {
		if _, k, _ := provider.BatchOf(in.ID); k >= c.batches[b] {
			return made, &provider.Error{Kind: provider.Capacity, Scope: provider.ScopeOffering, Message: "fewer machines than asked for"}
		}
	}
	return made, nil
}

// refuses says why a machine cannot be made now: the quota is reached, or the offering is sold out. nil if it can.
func (c *Cloud) refuses(now time.Time, s *supply) error {
	o := &s.offering
	if limit, ok := c.cfg.Quotas[o.QuotaGroup]; ok && c.used[o.QuotaGroup]+o.QuotaUnits > limit {
		return &provider.Error{Kind: provider.Quota, Group: o.QuotaGroup, Message: "LimitExceeded"}
	}
	if c.cfg.SoldOut[o.Key] || !c.has(now, s) {
		return &provider.Error{Kind: provider.Capacity, Scope: provider.ScopeOffering, Message: "InsufficientInstanceCapacity"}
	}
	return nil
}

// has moves the offering's supply to now.
func (c *Cloud) has(now time.Time, s *supply) bool {
	if c.cfg.CapacityOn == 0 {
		return true
	}
	if s.flips.IsZero() {
		s.flips = now.Add(c.exponential(c.cfg.CapacityOn))
	}
	for !now.Before(s.flips) {
		s.on = !s.on
		mean := c.cfg.CapacityOff
		if s.on {
			mean = c.cfg.CapacityOn
		}
		s.flips = s.flips.Add(c.exponential(mean))
	}
	return s.on
}

// exponential draws a time until something happens, at least a millisecond.
func (c *Cloud) exponential(mean time.Duration) time.Duration {
	return max(time.Duration(c.rng.ExpFloat64()*float64(mean)), time.Millisecond)
}

func (c *Cloud) make(now time.Time, s *supply, req *provider.Request, in provider.Intent) *machine {
	tags := make(map[string]string, len(req.Tags)+len(in.Tags))
	for k, v := range req.Tags {
		tags[k] = v
	}
	for k, v := range in.Tags {
		tags[k] = v
	}
	c.seq++
	o := &s.offering
	m := &machine{offering: o, price: o.Price, Machine: provider.Machine{
		ID: fmt.Sprintf("i-%08d", c.seq), Intent: cmp.Or(tags[fleet.TagIntent], in.ID), Type: o.Type, Zone: o.Zone, Market: o.Market,
		State:   provider.Pending,
		Address: fmt.Sprintf("10.%d.%d.%d", c.seq>>16&255, c.seq>>8&255, c.seq&255), Tags: tags, CreatedAt: now,
	}}
	c.machines = append(c.machines, m)
	c.byID[m.ID] = m
	c.byIntent[in.ID] = m
	c.used[o.QuotaGroup] += o.QuotaUnits
	c.rate += m.price
	c.running++
	c.made++
	c.fate(now, m)
	return m
}

// fate draws what will happen to the machine.
func (c *Cloud) fate(now time.Time, m *machine) {
	boot := float64(c.cfg.Boot) * math.Exp(c.cfg.BootWide*c.rng.NormFloat64())
	if c.cfg.Stragglers > 0 && c.rng.Float64() < c.cfg.Stragglers {
		boot *= 10
	}
	if c.cfg.BootFails == 0 || c.rng.Float64() >= c.cfg.BootFails {
		c.plan(now.Add(time.Duration(boot)), "booted", m, time.Time{})
	}
	m.hidden = c.cfg.Hidden > 0 && c.rng.Float64() < c.cfg.Hidden
	m.zombie = c.cfg.Zombies > 0 && c.rng.Float64() < c.cfg.Zombies && !m.hidden // else nobody could know
	if c.cfg.Dies > 0 {
		c.plan(now.Add(c.exponential(time.Duration(float64(time.Hour)/c.cfg.Dies))), "died", m, time.Time{})
	}
	if c.cfg.Interrupts && m.Market == fleet.MarketSpot && m.offering.Interrupted > 0 {
		at := now.Add(c.exponential(time.Duration(float64(time.Hour) / m.offering.Interrupted)))
		c.plan(at, "notice", m, at.Add(c.cfg.Notice))
		c.plan(at.Add(c.cfg.Notice), "taken", m, time.Time{})
	}
}

// plan has something happen to the machine; events of the same time happen in the order of their planning.
func (c *Cloud) plan(at time.Time, kind string, m *machine, until time.Time) {
	c.seq++
	c.happen.Push(Happening{At: at, Kind: kind, ID: m.ID, Intent: m.Intent, Until: until, seq: c.seq})
}

// Next returns when something happens by itself; the zero time = never.
func (c *Cloud) Next() time.Time {
	if c.happen.Len() == 0 {
		return time.Time{}
	}
	return c.happen.Top().At
}

// Advance lets happen what is due and tells it.
func (c *Cloud) Advance(now time.Time) (list []Happening) {
	for c.happen.Len() > 0 && !c.happen.Top().At.After(now) {
		h := c.happen.Pop()
		m := c.byID[h.ID]
		if m == nil || !m.ended.IsZero() {
			continue
		}
		switch h.Kind {
		case "booted":
			m.booted, m.State = true, provider.Running
		case "taken", "died":
			c.end(h.At, m)
		}
		list = append(list, h)
	}
	return list
}

// end terminates and bills the machine.
func (c *Cloud) end(now time.Time, m *machine) {
	m.ended, m.State = now, provider.Terminated
	c.used[m.offering.QuotaGroup] -= m.offering.QuotaUnits
	c.billed += m.price * m.offering.Billing.Charged(now.Sub(m.CreatedAt)).Hours()
	c.rate -= m.price
	c.running--
}

// Destroy terminates a machine.
func (c *Cloud) Destroy(now time.Time, id string) (took time.Duration, err error) {
	took = c.latency(now)
	if err := c.begin(now, provider.CallDestroy, 1); err != nil {
		return took, err
	}
	m := c.byID[id]
	if m == nil || !m.ended.IsZero() {
		return took, &provider.Error{Kind: provider.NotFound, Message: "InvalidInstanceID.NotFound: " + id}
	}
	if m.zombie {
		m.zombie = false
	} else {
		c.end(now, m)
	}
	return took, c.after(now)
}

// SetTags sets tags.
func (c *Cloud) SetTags(now time.Time, id string, tags map[string]string) (took time.Duration, err error) {
	took = c.latency(now)
	if err := c.begin(now, provider.CallTag, 1); err != nil {
		return took, err
	}
	m := c.byID[id]
	if m == nil || !m.ended.IsZero() {
		return took, &provider.Error{Kind: provider.NotFound, Message: "InvalidInstanceID.NotFound: " + id}
	}
	all := make(map[string]string, len(m.Tags)+len(tags))
	for k, v := range m.Tags {
		all[k] = v
	}
	for k, v := range tags {
		all[k] = v
	}
	m.Tags = all
	return took, c.after(now)
}

// Cost returns what was charged so far, machines that run included.
func (c *Cloud) Cost(now time.Time) float64 {
	sum := c.billed
	for _, m := range c.machines {
		if m.ended.IsZero() {
			sum += m.price * m.offering.Billing.Charged(now.Sub(m.CreatedAt)).Hours()
		}
	}
	return sum
}

// Running returns how many machines are billed now, and what they cost an hour.
func (c *Cloud) Running() (machines int, perHour float64) { return c.running, c.rate }

// Made returns how many machines there ever were.
func (c *Cloud) Made() int { return c.made }

// Used returns the units in use of a quota group.
func (c *Cloud) Used(group string) int64 { return c.used[group] }

// sooner orders by time, then by order of planning.
func sooner(a, b Happening) bool {
	if !a.At.Equal(b.At) {
		return a.At.Before(b.At)
	}
	return a.seq < b.seq
}

// Size returns what a machine has, and whether it runs.
func (c *Cloud) Size(id string) (size drover.Capacity, alive bool) {
	m := c.byID[id]
	if m == nil || !m.ended.IsZero() {
		return size, false
	}
	return m.offering.Capacity, true
}
