package scaler

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/drover-project/drover/fleet"
)

// Holding is why an idle machine is kept: it is worth what it costs.
type Holding struct {
	Instance string
	Outlook  Outlook
	Saves    float64 // if it is needed: what booting another would cost, and the waiting for it
	Keeping  float64 // what keeping it until then costs
}

// String tells it to people.
func (h Holding) String() string {
	return fmt.Sprintf("kept: needed within %s with %.0f %%, having none then would cost %s, keeping it %s",
		h.Outlook.Within.Round(time.Second), 100*h.Outlook.Chance, fleet.Money(h.Saves), fleet.Money(h.Keeping))
}

// keep divides the idle machines that no work has a place on into those that are worth keeping and those that go. It is a
// newsvendor's question for each: the nth idle machine is needed once the need has risen by as much as n of them cost. How soon
// that happens was seen (Swings). It is kept while the rate at which it is needed, times what it then saves, is more than its
// price: then keeping it up to some time pays on average.
func (p *plan) keep(idle []*fleet.Instance) (gone []*fleet.Instance) {
	template := p.template
	slices.SortStableFunc(idle, func(a, b *fleet.Instance) int { // those that go first are last
		return cmp.Or(cmp.Compare(rank(a, template), rank(b, template)), cmp.Compare(a.Price, b.Price), b.IdleAt.Compare(a.IdleAt))
	})
	need, unit := p.need(), p.unitPrice()
	ahead := 0.0
	for _, i := range idle {
		depth := ahead + i.Price/2
		at := i.IdleAt.Add(p.patience(i))
		look := p.in.Pace.swings.outlook(need, unit, depth)
		saves := p.bootPrice(i)
		held := p.in.Now.Before(at)
		if !held && p.in.Pace.swings != nil && rank(i, template) == 0 && look.Rate*saves*3600 > i.Price {
			held = true
			at = p.in.Now.Add(beat)
		}
		if !held {
			gone = append(gone, i)
			continue
		}
		ahead += i.Price
		p.wake(at.Truncate(tick).Add(tick)) // many at once
		mean := look.Chance / max(look.Rate, 1e-9)
		p.out.Held = append(p.out.Held, Holding{Instance: i.ID, Outlook: look, Saves: saves, Keeping: i.Price * mean / 3600})
	}
	slices.Reverse(gone)
	return gone
}

// bootPrice is what it costs to have the machine booted again when it is needed: its price meanwhile, and the waiting.
func (p *plan) bootPrice(i *fleet.Instance) float64 {
	boot := p.bootOf(i)
	return boot.Hours() * (i.Price + p.in.Policy.WaitCost*p.pieces(boot))
}

// pieces is how many pieces of work wait on average while a machine boots that they lack: half of what machines hold, as
// the first one comes alone. Work that waits does not end, so as many more come in the time that work runs; those wait half
// as long as the first ones.
func (p *plan) pieces(boot time.Duration) float64 {
	if p.counts.busy == 0 {
		return 1
	}
	each := float64(p.counts.work) / float64(p.counts.busy)
	more := 0.0
	if run := p.runs(); run > 0 {
		more = boot.Seconds() / run.Seconds() / 2
	}
	return (1 + each*(1+more)) / 2
}

// runs is how long a piece of work runs, from how much of it runs and how much ends; 0 if nothing ends.
func (p *plan) runs() time.Duration {
	ends := p.in.Pace.cpu * p.in.Pace.fade(p.in.Now)
	if ends <= 0 {
		return 0
	}
	return time.Duration(min(float64(p.counts.used)/ends, 1e6) * float64(time.Second))
}

// patience is how long a machine is kept whatever is expected: at least a moment, as the next work may be on its way to it.
// Where most work is new by the time that a machine has booted, the need of now says little about the need of then. There a
// machine is kept until idling cost as much as its boot (ski rental); elsewhere, for the share of that time by which work is
// new. As long as nobody knows how work comes here, the waiting for a boot counts too: that costs at most twice what knowing would.
func (p *plan) patience(i *fleet.Instance) time.Duration {
	boot := p.bootOf(i)
	least := max(moment, time.Duration(p.renewed(boot)*float64(boot)))
	unknown := 1 - p.in.Pace.swings.known()
	if unknown <= 0 {
		return least
	}
	rent := time.Duration(min(unknown*p.bootPrice(i)/max(i.Price, 1e-9), (10*time.Minute).Hours()) * float64(time.Hour))
	return max(least, rent)
}

// renewed is the share of the work, 0 to 1, that ends within a time while other work takes its place; 0 if nothing ends.
func (p *plan) renewed(within time.Duration) float64 {
	l := &p.in.Pace.run
	if l.ended <= 0 || l.held <= 0 {
		return 0
	}
	return 1 - math.Exp(-within.Seconds()*l.ended/l.held)
}

// moment is how soon control gives a machine that became idle its next work, if that waits.
const moment = 3 * time.Second

// need is what the machines cost an hour that have work, or that work was promised.
func (p *plan) need() float64 {
	need := p.counts.busyCost
	for _, n := range p.special {
		if i := p.in.Instances[n]; p.kept[n] && i.Work == 0 {
			need += i.Price
		}
	}
	for _, b := range p.buys {
		if b.why == WhyDemand {
			need += float64(b.count) * p.offers[b.offer].Price
		}
	}
	return need
}

// unitPrice is the price of a typical machine: of those with work, else the cheapest that is sold.
func (p *plan) unitPrice() float64 {
	if p.counts.busy > 0 {
		return p.counts.busyCost / float64(p.counts.busy)
	}
	least := math.Inf(1)
	for i := range p.offers {
		least = min(least, p.offers[i].Price)
	}
	if math.IsInf(least, 1) {
		return 1
	}
	return least
}
