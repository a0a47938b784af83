package scaler

import (
	"cmp"
	"fmt"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/fleet/learned"
	"github.com/drover-project/drover/internal/fleet/provider"
)

// Input is everything that a decision depends on. Decide changes nothing of it.
type Input struct {
	Now       time.Time
	Policy    *fleet.Policy    // canonicalized and valid
	Template  string           // the policy's, if it is at hand
	Offerings []fleet.Offering // that the policy may buy, with today's prices
	Demand    []fleet.DemandClass
	Instances []*fleet.Instance // of the pool, in a fixed order, without those that are gone
	GroupUsed map[string]int64  // units in use by quota group, over all pools of the cloud
	Beliefs   *learned.Cloud
	Pace      Pace       // of the pool's work
	Spent     float64    // by the pool since midnight UTC
	Listed    bool       // the cloud's machines were all seen once: creates may be decided
	Settled   bool       // and agents had time to call home: destroys may be decided
	Short     []Shortage // of quotas, in other pools of the cloud
	Batch     int        // machines a create of this pool; 0 = as many as the provider can
}

// The reasons' codes.
const (
	WhyDemand      = "demand"
	WhyMinimum     = "minimum"
	WhyStandby     = "standby"
	WhyHedge       = "hedge"
	WhyIdle        = "idle"
	WhyDrained     = "drained"
	WhyBoot        = "boot"
	WhyLost        = "lost"
	WhyOrphan      = "orphan"
	WhyBehavior    = "behavior"
	WhyExpired     = "expired"
	WhyDrift       = "drift"
	WhyInterrupted = "interrupted"
	WhyConsolidate = "consolidate"
	WhySurplus     = "surplus"
)

// Action is one thing to do, and why.
type Action struct {
	fleet.Action
	Buys *fleet.Offering // of a create: what Action.Offering names
}

// Waiting tells about one class of waiting work. Its place in line, and when its machine is ready, are not known here.
type Waiting struct {
	fleet.Waiting
	Limit string // of the pool or the cloud that keeps machines for it from being bought; "" = none
}

// Output is a decision.
type Output struct {
	Actions  []Action
	Waiting  []Waiting
	Need     float64    // what the machines cost an hour that have work, or that work was promised
	Unit     float64    // what a typical machine costs an hour
	Used     int64      // MHz, by work on the machines
	Held     []Holding  // idle machines that are worth keeping
	Awaits   int        // pieces of work for which room is expected sooner than a new machine
	Deferred int        // creates that are wanted, but wait for rate or concurrency
	Short    []Shortage // of quotas, for work that waits
	Lacks    string     // why the pool has fewer machines than its minimum; "" = it has them, or they come
	Wake     time.Time  // decide again then even if nothing happens; zero = no need
}

// Decide returns what to do now.
func Decide(in Input) Output {
	p := newPlan(&in)
	p.survey()
	if in.Listed {
		p.demand()
		p.place()
		p.await()
		p.buyDemand()
		p.improve()
		p.buyMinimum()
		p.hedge()
	}
	if in.Settled && !in.Policy.PauseDestroys {
		p.yield()
		p.destroyFinished()
		p.destroyHopeless()
		p.replace()
		p.retireIdle()
		p.consolidate()
	}
	p.out.Need, p.out.Unit, p.out.Used = p.need(), p.unitPrice(), p.counts.used
	p.emitCreates()
	p.explain()
	return p.out
}

type plan struct {
	in       *Input
	out      Output
	offers   []offer
	byKey    map[string]int
	shapes   []shape
	devices  []string // the device names that the demand asks for
	classes  []class
	rooms    []room
	buys     []buy
	units    map[string]int64 // left of quota groups
	counts   counts
	limits   limits
	special  []int             // indexes of the machines that are not just at work: few, in a big fleet
	kept     []bool            // idle and starting machines, by index, that are needed
	keptFor  []int16           // the highest priority of the work that needs them
	spares   []int             // machines that may go to make room, least loss first; nil = nobody asked
	promised []*fleet.Offering // for which room is made
	after    ledge             // how limits stand once those are gone that are going
	over     map[string]int64  // units by which quota groups are overdrawn
	destroys int               // tokens left
	spent    int
	onStart  int // pieces of work placed onto starting machines
	boots    map[string]time.Duration
	acted    map[string]bool // machines that something was decided about
	template string          // of the policy
}

// counts is what the survey found.
type counts struct {
	live     int // not draining, destroying, orphaned
	starting int
	hedges   int
	moving   int // draining with work, or being replaced
	lost     int
	busy     int
	work     int     // pieces, on the busy ones
	used     int64   // cpu, of them
	busyCost float64 // per hour
}

// newPlan returns an empty plan over the input, which it only reads.
func newPlan(in *Input) *plan {
	p := &plan{
		in: in, byKey: make(map[string]int, len(in.Offerings)), units: map[string]int64{}, over: map[string]int64{},
		kept: make([]bool, len(in.Instances)), keptFor: make([]int16, len(in.Instances)), boots: map[string]time.Duration{},
	}
	p.template = cmp.Or(in.Template, in.Policy.Template())
	p.destroys = in.Beliefs.Tokens(in.Now, provider.CallDestroy)
	p.offers = make([]offer, len(in.Offerings))
	for i := range in.Offerings {
		p.offers[i].Offering = &in.Offerings[i]
		p.byKey[in.Offerings[i].Key] = i
	}
	return p
}

// wake asks for another decision at t.
func (p *plan) wake(t time.Time) {
	if t.After(p.in.Now) && (p.out.Wake.IsZero() || t.Before(p.out.Wake)) {
		p.out.Wake = t
	}
}

// act decides one thing about a machine; the first decision of a pass holds.
func (p *plan) act(kind fleet.ActionKind, i *fleet.Instance, why, format string, args ...any) {
	if p.acted[i.ID] {
		return
	}
	if p.acted == nil {
		p.acted = map[string]bool{}
	}
	p.acted[i.ID] = true
	p.out.Actions = append(p.out.Actions, Action{Action: fleet.Action{
		Kind: kind, Instance: i.ID, Why: why, Reason: fmt.Sprintf(format, args...),
	}})
}

// ordinary reports that the machine is at work and nothing else is to be said of it.
func ordinary(i *fleet.Instance, template string) bool {
	return i.State == fleet.InstanceActive && i.Work > 0 && i.Behavior == fleet.BehaviorRun && i.LostAt.IsZero() && i.InterruptAt.IsZero() &&
		i.ExpiresAt.IsZero() && i.Template == template
}

// survey counts machines and what they cost.
func (p *plan) survey() {
	l := &p.limits
	for n, i := range p.in.Instances {
		if !ordinary(i, p.template) {
			p.special = append(p.special, n)
		}
		l.cost += i.Price
		if leaving(i) {
			l.leaving += i.Price
		}
		l.capacity = l.capacity.Add(i.Capacity)
		l.machines++
		switch {
		case i.State.Starting():
			p.counts.live++
			p.counts.starting++
			if i.Hedge {
				p.counts.hedges++
			}
		case i.State == fleet.InstanceActive:
			p.counts.live++
			if i.Work > 0 {
				p.counts.busy++
				p.counts.work += i.Work
				p.counts.used += i.Used.CPU
				p.counts.busyCost += i.Price
			}
			if !i.LostAt.IsZero() {
				p.counts.lost++
			}
		case i.State == fleet.InstanceDraining && i.Busy():
			p.counts.moving++
		}
	}
}

// limits is what all machines of the pool take, and what was planned on top.
type limits struct {
	machines int
	capacity drover.Capacity
	cost     float64
	leaving  float64 // of the cost, that of machines which are about to be gone
}

// allows returns how many of n machines of the offering the policy allows more, and else what stops it.
func (p *plan) allows(o *fleet.Offering, n, priority int) (int, string) {
	return p.allowed(&p.limits, o, n, priority)
}

// allowed returns how many of n machines of the offering the pool's policy has room for beside l, and what bounds them;
// "" if nothing does.
func (p *plan) allowed(l *limits, o *fleet.Offering, n, priority int) (int, string) {
	pol := p.in.Policy
	why := ""
	bound := func(left int, text func() string) {
		if left < n {
			n, why = max(0, left), text()
		}
	}
	if pol.Max > 0 {
		bound(pol.Max-l.machines, func() string { return fmt.Sprintf("the pool's maximum of %d machines", pol.Max) })
	}
	if c := pol.Limits.CPU; c > 0 {
		bound(int((c-l.capacity.CPU)/max(o.Capacity.CPU, 1)), func() string { return "the pool's limit of cpu" })
	}
	if m := pol.Limits.MemoryMB; m > 0 {
		bound(int((m-l.capacity.MemoryMB)/max(o.Capacity.MemoryMB, 1)), func() string { return "the pool's limit of memory" })
	}
	b := pol.Budget
	if b.AtLimit == fleet.BudgetAlert || b.AtLimit == fleet.BudgetCritical && priority >= b.CriticalPriority {
		return n, why
	}
	if b.PerHour > 0 {
		bound(int((b.PerHour-l.cost)/o.Price+1e-9), func() string { return fmt.Sprintf("the budget of %s an hour", fleet.Money(b.PerHour)) })
	}
	if b.PerDay > 0 {
		// What runs now is assumed to run for another hour, as it may be busy, and then can't be returned.
		left := b.PerDay - p.in.Spent - (l.cost - l.leaving)
		bound(int(left/o.Price+1e-9), func() string { return fmt.Sprintf("the budget of %s a day", fleet.Money(b.PerDay)) })
	}
	return n, why
}

// add counts n machines of the offering; a negative n takes them back.
func (l *limits) add(o *fleet.Offering, n int) {
	l.machines += n
	l.cost += float64(n) * o.Price
	l.capacity = l.capacity.Add(drover.Capacity{
		CPU: o.Capacity.CPU * int64(n), MemoryMB: o.Capacity.MemoryMB * int64(n),
		DiskMB: o.Capacity.DiskMB * int64(n),
	})
}
