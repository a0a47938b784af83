package pool

import (
	"fmt"
	"time"

	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/fleet/learned"
	"github.com/drover-project/drover/internal/fleet/ledger"
	"github.com/drover-project/drover/internal/fleet/provider"
	"github.com/drover-project/drover/internal/fleet/scaler"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/minheap"
)

// Config is what a Core is made with.
type Config struct {
	// The tag that tells this fleet's machines from those of everybody else in the same account.
	Owner    string   // Drover's name in tags; machines with another are never touched
	Also     []string // further names of ours
	Former   []string // names of clusters whose machines are ours once their agents call here; they are left alone before
	Provider string
	Setting  string          // names what the provider's own settings put into its machines; "" = nothing
	Policies []*fleet.Policy // of this provider; canonicalized and valid
	Caps     provider.Capabilities
	Seed     uint64
	IDs      id.Source
	// that all nodes of its machines have, as constraints name them without "attr."
	Attributes map[string]string
	Learned    func() []byte                                    // of the cloud before a restart, as Update told; nil = nothing
	Spent      func(pool string) float64                        // what the ledger has of it today, at the start; nil = nothing
	UserData   func(policy *fleet.Policy, intent string) string // nil = none; where intents are of one provider.Batch, the same for all
	Shareable  func(policy *fleet.Policy) bool                  // machines can share their user data; nil = none can
	Decide     func(scaler.Input) scaler.Output                 // nil = scaler.Decide; another one for comparison
	Audit      func(fleet.Audit)                                // nil = not told
	Sharing    *Sharing                                         // of node pools that several pools serve; nil = each pool has one of its own
}

// Core is the fleet on one cloud. Not for use by several goroutines at once.
type Core struct {
	cfg     Config
	pools   []*poolState
	beliefs *learned.Cloud
	// table holds every machine that is not gone, by its intent, which is also the instance's ID.
	table        map[string]*entry
	byProviderID map[string]*entry // by ProviderID
	byNode       map[string]*entry
	gone         map[string]time.Time // ids of machines that went lately: they may show up again in stale lists
	effects      []Effect
	started      time.Time
	list         listing
	units        map[string]int64 // by quota group, everything not gone
	sure         map[string]int64 // the same, of machines that the cloud confirmed
	cost         float64          // per hour, of confirmed machines
	retry        *minheap.Heap[retryAt]
	strays       map[string]*entry        // those of no pool
	ended        []fleet.Instance         // gone, and the log does not know it yet
	trouble      string                   // why the cloud can't be used, as its last answers say; "" = it can
	before       map[string]fleet.Durable // from the log, of pools that are not there
	costs        []fleet.Cost
	learned      []byte               // that was written last
	wrote        time.Time            // when that was looked at last
	said         map[string]time.Time // when failures of creates were told last, by their reason
	prices       map[string]float64   // per hour, by offering, as the cloud told; else the policies' count
}

// poolState is what the core knows about one pool. It outlives changes of the pool's policy; only the pool's removal
// ends it.
type poolState struct {
	batch     int // machines that a create may share its user data among, of the policy batchOf; 0 = not known
	batchOf   *fleet.Policy
	policy    *fleet.Policy
	setting   string // the provider's
	template  string // the policy's and the setting: one string for all, as it is compared often
	offerings []fleet.Offering
	offering  map[string]*fleet.Offering
	instances []*fleet.Instance // in the order in which they were decided
	demand    []fleet.DemandClass
	last      scaler.Output
	stale     bool // instances holds some that are gone
	observed  map[string]observed
	base      map[string]string  // attributes of all its nodes
	prices    map[string]float64 // the core's
	cost      float64            // per hour, of its confirmed machines
	spent     spending
	failed    createFailure
	pace      scaler.Pace
}

// entry is a machine that is not gone, with what only the core needs to know: its calls, lists and accounting. It
// refers to the pool's instance instead of copying it, as the scaler reads instances side by side.
type entry struct {
	*fleet.Instance
	pool       *poolState // nil for orphans
	counted    bool       // in Core.units
	sure       bool       // in Core.sure and Core.cost
	unseen     int        // lists in a row that lack it though its agent is connected, and show most of the others
	misses     int        // complete lists in a row without it
	listed     int        // listing.seq of the last list that had it
	seenAt     time.Time  // when the cloud was last known to have it
	tries      int        // of the call under way: create or destroy
	next       time.Time  // when to try again
	inFlight   bool       // a create or destroy is under way
	killed     bool
	unanswered bool // its create, when the server was started again
	meter      ledger.Meter
	consoled   bool              // its console was asked for, as it did not boot
	written    written           // what the log has of it
	seen       *provider.Machine // of a machine of a former cluster: what the cloud told last; nil = nothing yet
	stopped    time.Time         // when the cloud accepted to destroy it, and ended to bill it; zero if it did not
}

// NewCore starts with an empty picture: it lists the cloud before it decides anything.
func NewCore(now time.Time, cfg Config) *Core {
	c := &Core{
		retry: newRetries(),
		cfg:   cfg, beliefs: learned.New(cfg.Seed, cfg.Caps), table: map[string]*entry{}, byProviderID: map[string]*entry{},
		byNode: map[string]*entry{}, gone: map[string]time.Time{}, started: now, units: map[string]int64{}, sure: map[string]int64{},
		strays: map[string]*entry{}, before: map[string]fleet.Durable{}, prices: map[string]float64{}, said: map[string]time.Time{},
	}
	c.cfg.Caps.Batch = max(cfg.Caps.Batch, 1)
	if cfg.Decide == nil {
		c.cfg.Decide = scaler.Decide
	}
	for _, p := range cfg.Policies {
		c.pools = append(c.pools, c.newPoolState(now, p))
	}
	return c
}

// recomputeOfferings finds out anew what the pool may buy.
func (p *poolState) recomputeOfferings() {
	if p.policy.Datacenter != "" {
		p.base["node.datacenter"] = p.policy.Datacenter
	}
	offerings := p.policy.OfferingsAt(p.prices)
	for i := range offerings {
		p.known(&offerings[i])
	}
	p.offerings, p.template = offerings, p.policy.Template()+p.setting
	p.offering = make(map[string]*fleet.Offering, len(offerings))
	for i := range offerings {
		p.offering[offerings[i].Key] = &offerings[i]
	}
}

// Effects returns what is to be done outside since the last call, in order.
func (c *Core) Effects() []Effect {
	e := c.effects
	c.effects = nil
	return e
}

// CreatesDeferred reports whether the last decisions wanted more creates than could be begun: then each end of one is a reason
// to decide again at once.
func (c *Core) CreatesDeferred() bool {
	for _, p := range c.pools {
		if p.last.Deferred > 0 {
			return true
		}
	}
	return false
}

// Beliefs returns what was learned of the cloud, for people.
func (c *Core) Beliefs() *learned.Cloud { return c.beliefs }

// Instance returns a copy; ok is false if it is not known.
func (c *Core) Instance(id string) (i fleet.Instance, ok bool) {
	e := c.table[id]
	if e == nil {
		return i, false
	}
	return *e.Instance, true
}

// Instances returns copies of a pool's machines in the order in which they were decided; "" = those of no pool.
func (c *Core) Instances(pool string) []fleet.Instance {
	var list []fleet.Instance
	for _, p := range c.pools {
		if p.policy.Name == pool {
			for _, i := range p.living() {
				list = append(list, *i)
			}
		}
	}
	if pool == "" {
		for _, id := range c.orphans() {
			list = append(list, *c.strays[id].Instance)
		}
	}
	return list
}

// Waiting returns what the last decision said about the pool's waiting work.
func (c *Core) Waiting(pool string) []scaler.Waiting {
	if p := c.pool(pool); p != nil {
		return p.last.Waiting
	}
	return nil
}

// Lacks returns why the pool has fewer machines than its minimum, by the last decision; "" if it has them, or they come.
func (c *Core) Lacks(pool string) string {
	if p := c.pool(pool); p != nil {
		return p.last.Lacks
	}
	return ""
}

// Held returns why an idle machine of the pool is kept; ok is false if it is not, or not for what it is worth.
func (c *Core) Held(pool, instance string) (h scaler.Holding, ok bool) {
	if p := c.pool(pool); p != nil {
		for _, h := range p.last.Held {
			if h.Instance == instance {
				return h, true
			}
		}
	}
	return h, false
}

// Demand returns the work that waits for the pool's machines.
func (c *Core) Demand(pool string) []fleet.DemandClass {
	if p := c.pool(pool); p != nil {
		return p.demand
	}
	return nil
}

// Knows reports whether the node was heard of.
func (c *Core) Knows(node string) bool { return c.byNode[node] != nil }

// SetDemand replaces the work that waits for machines of the node pool.
func (c *Core) SetDemand(nodePool string, demand []fleet.DemandClass) {
	for _, p := range c.pools {
		if p.policy.NodePool == nodePool {
			p.demand = demand
		}
	}
}

// pool finds a pool by its name; nil if there is none. A search is enough: a cloud has few pools.
func (c *Core) pool(name string) *poolState {
	for _, p := range c.pools {
		if p.policy.Name == name {
			return p
		}
	}
	return nil
}

// living drops those that are gone from the list.
func (p *poolState) living() []*fleet.Instance {
	if p.stale {
		n := 0
		for _, i := range p.instances {
			if i.State != fleet.InstanceGone {
				p.instances[n] = i
				n++
			}
		}
		clear(p.instances[n:])
		p.instances, p.stale = p.instances[:n], false
	}
	return p.instances
}

// audit hands a line to the configured listener, if there is one. Lines without a provider get the core's.
func (c *Core) audit(e fleet.Audit) {
	if e.Provider == "" {
		e.Provider = c.cfg.Provider
	}
	if c.cfg.Audit != nil {
		c.cfg.Audit(e)
	}
}

// note writes an audit line about one machine. The line's Why is that of the machine's last change of state.
func (c *Core) note(now time.Time, e *entry, what, reason string) {
	c.audit(fleet.Audit{At: now, Pool: e.Pool, Instance: e.ID, What: what, Why: e.Why, Reason: reason, Offering: e.Offering})
}

// add starts to track a machine. A nil pool makes it a stray, which only finishOrphans can destroy. It counts against
// its quota group from now on, although the cloud may not have it yet: so the next decision cannot use the same quota
// again.
func (c *Core) add(i *fleet.Instance, p *poolState) *entry {
	e := &entry{Instance: i, pool: p}
	c.table[i.ID] = e
	if p != nil {
		p.instances = append(p.instances, i)
	} else {
		c.strays[i.ID] = e
	}
	c.units[i.QuotaGroup] += i.QuotaUnits
	e.counted = true
	return e
}

// confirm notes that the cloud has the machine.
func (c *Core) confirm(now time.Time, e *entry, m *provider.Machine) {
	found(e.Instance, m, now)
	e.misses, e.seenAt = 0, now
	c.byProviderID[m.ID] = e
	if !e.sure {
		e.sure = true
		c.sure[e.QuotaGroup] += e.QuotaUnits
		c.cost += e.Price
		if e.pool != nil {
			e.pool.cost += e.Price
		}
	}
}

// end makes the machine gone.
func (c *Core) end(now time.Time, e *entry, why, reason string) {
	if e.Market == fleet.MarketSpot && !e.ReadyAt.IsZero() {
		c.beliefs.Ran(e.Offering, now.Sub(e.ReadyAt), !e.InterruptAt.IsZero())
	}
	become(e.Instance, fleet.InstanceGone, now, why, reason)
	c.note(now, e, "gone", reason)
	// The capacity counts exactly once, whatever way the machine took: counted and sure say which sums include it.
	if e.counted {
		c.units[e.QuotaGroup] -= e.QuotaUnits
	}
	if e.sure {
		c.sure[e.QuotaGroup] -= e.QuotaUnits
		c.cost -= e.Price
		if e.pool != nil {
			e.pool.cost -= e.Price
		}
		c.beliefs.Destroyed(now, e.QuotaGroup)
	}
	c.charge(now, e)
	e.GoneAt = now
	// A machine that was never recorded has nothing in the log to be updated.
	if why != whyUnrecorded {
		c.ended = append(c.ended, *e.Instance)
	}
	delete(c.table, e.ID)
	delete(c.strays, e.ID)
	delete(c.byProviderID, e.ProviderID)
	delete(c.byNode, e.NodeID)
	c.gone[e.ID] = now
	if e.pool != nil {
		e.pool.stale = true
	}
	c.effects = append(c.effects, Effect{Kind: EffectForget, Instance: e.ID, Intents: []fleet.Durable{{ID: e.ID}}})
}

// Totals is the fleet in numbers.
type Totals struct {
	Machines int
	Cost     float64 // per hour
	Listed   bool
	Settled  bool
}

// Totals returns the fleet in numbers.
func (c *Core) Totals(now time.Time) Totals {
	return Totals{len(c.table), c.cost, c.list.complete > 0, c.settled(now, nil)}
}

// String tells the fleet in a line, for failures of tests.
func (c *Core) String() string {
	states := map[fleet.InstanceState]int{}
	for _, e := range c.table {
		states[e.State]++
	}
	return fmt.Sprintf("%d machines: %v", len(c.table), states)
}
