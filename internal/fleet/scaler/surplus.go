package scaler

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/drover-project/drover/fleet"
)

// Shortage is what work of a priority lacks of a quota that is used up: other pools of the cloud may have idle machines in it.
type Shortage struct {
	Group    string
	Units    int64
	Priority int
}

// makeRoom returns machines that hold what stops a purchase for the classes first to last: idle ones, and ones on
// their way, that nothing as urgent can use. What is lost least goes first, and no more than is needed; the purchase
// comes once they are gone, so that no limit is exceeded meanwhile. It reports whether something can be bought at once:
// where the day's budget alone was in the way, as that counts what will be paid.
func (p *plan) makeRoom(first, last, priority int) (again bool) {
	if !p.in.Settled || p.in.Policy.PauseDestroys || p.in.Policy.PauseCreates {
		return false
	}
	looked := false
	for k := first; k < last; k++ {
		c := &p.classes[k]
		if c.left == 0 || c.standby || c.strange != "" {
			continue
		}
		if !looked {
			p.findSpares()
			looked = true
		}
		for _, at := range p.offersFor(c) {
			o := &p.offers[at]
			wanted := (c.left + c.whole(&o.size) - 1) / c.whole(&o.size)
			freed, promised := p.swap(o, wanted, priority)
			if promised == 0 {
				continue
			}
			c.room = "waits until what nothing needs is gone"
			if freed > 0 {
				c.room += fmt.Sprintf(": %d idle or starting here", freed)
			}
			if n, _ := p.allows(o.Offering, 1, priority); n > 0 && p.can(o) > 0 && c.stopped != "" {
				c.stopped, again = "", true
			}
			break
		}
		if c.room == "" {
			p.lacksUnits(c, priority)
		}
	}
	return again
}

// offersFor lists what could be bought for the class but for limits and quotas, cheapest first.
func (p *plan) offersFor(c *class) (list []int) {
	for i := range p.offers {
		o := &p.offers[i]
		if c.eligible[i] && o.blocked == "" && (o.cap < 0 || o.bought < o.cap) && c.whole(&o.size) > 0 {
			list = append(list, i)
		}
	}
	each := func(i int) float64 {
		o := &p.offers[i]
		return o.cost / float64(min(c.left, c.whole(&o.size)))
	}
	slices.SortStableFunc(list, func(a, b int) int { return cmp.Compare(each(a), each(b)) })
	return list
}

// ledge is how far limits and quotas are used, as they will be.
type ledge struct {
	limits limits
	units  map[string]int64 // left
}

// without takes the machine out of the sums, as if it had been returned.
func (l *ledge) without(i *fleet.Instance) {
	l.limits.machines--
	l.limits.cost -= i.Price
	l.limits.capacity = l.limits.capacity.Sub(i.Capacity)
	l.units[i.QuotaGroup] += i.QuotaUnits
}

// with puts the machine back into the sums.
func (l *ledge) with(i *fleet.Instance) {
	l.limits.machines++
	l.limits.cost += i.Price
	l.limits.capacity = l.limits.capacity.Add(i.Capacity)
	l.units[i.QuotaGroup] -= i.QuotaUnits
}

// findSpares lists the machines that may go to make room, least loss first. It also says how limits stand once those that are
// going are gone, and those for which room is made are there.
func (p *plan) findSpares() {
	p.spares = []int{}
	p.after = ledge{limits: p.limits, units: map[string]int64{}}
	for group, left := range p.units {
		p.after.units[group] = left - p.over[group]
	}
	for _, o := range p.promised {
		p.after.limits.add(o, 1)
		p.after.units[o.QuotaGroup] -= o.QuotaUnits
	}
	for _, n := range p.special {
		i := p.in.Instances[n]
		switch {
		case p.acted[i.ID] || leaving(i) || i.State.Starting() && p.givenUp(i) && i.Behavior != fleet.BehaviorHold:
			p.after.without(i)
		case p.spare(i):
			p.spares = append(p.spares, n)
		}
	}
	p.after.limits.leaving = 0
	slices.SortStableFunc(p.spares, func(a, b int) int { return cmp.Compare(p.loss(p.in.Instances[a]), p.loss(p.in.Instances[b])) })
}

// leaving reports that the machine is about to be gone.
func leaving(i *fleet.Instance) bool {
	return i.State == fleet.InstanceDestroying || i.State == fleet.InstanceDraining && !i.Busy() && i.Behavior != fleet.BehaviorHold
}

// spare reports that nothing would be lost with the machine but its boot.
func (p *plan) spare(i *fleet.Instance) bool {
	if i.Behavior != fleet.BehaviorRun || !i.LostAt.IsZero() || !i.InterruptAt.IsZero() || i.Busy() {
		return false
	}
	return i.State.Starting() || i.State == fleet.InstanceActive && !i.IdleAt.IsZero()
}

// loss is what the machine's boot cost so far, and what is paid for it already.
func (p *plan) loss(i *fleet.Instance) float64 {
	if rank(i, p.template) > 0 {
		return 0 // it would be replaced anyway
	}
	hours := p.bootOf(i).Hours()
	if i.State.Starting() {
		hours = min(hours, p.in.Now.Sub(i.PlannedAt).Hours())
	}
	if age := p.in.Now.Sub(i.CreatedAt); !i.CreatedAt.IsZero() {
		hours += (i.Billing.Charged(age) - age).Hours()
	}
	return hours * i.Price
}

// swap sends machines away until as many of the offer as are wanted could be bought, or as many as can. It returns how many
// go, and for how many of the offer there will be room.
func (p *plan) swap(o *offer, wanted, priority int) (freed, promised int) {
	for ; promised < wanted; promised++ {
		victims, ok := p.victims(o, priority)
		if !ok {
			return freed, promised
		}
		for _, n := range victims {
			i := p.in.Instances[n]
			p.after.without(i)
			p.limits.leaving += i.Price
			p.spares = slices.DeleteFunc(p.spares, func(m int) bool { return m == n })
			p.dismiss(i, "nothing needs it, and it makes room for %s", o.Key)
			freed++
		}
		p.promised = append(p.promised, o.Offering)
		p.after.limits.add(o.Offering, 1)
		p.after.units[o.QuotaGroup] -= o.QuotaUnits
	}
	return freed, promised
}

// dismiss sends a machine away that has no work: one whose agent may be given some is drained first.
func (p *plan) dismiss(i *fleet.Instance, format string, args ...any) {
	if i.State.Starting() && i.State != fleet.InstanceRegistered {
		p.act(fleet.ActionDestroy, i, WhySurplus, format, args...)
		return
	}
	p.act(fleet.ActionDrain, i, WhySurplus, format, args...)
}

// victims chooses the machines that have to go so that one of the offer can be bought; ok is false if that does not do.
func (p *plan) victims(o *offer, priority int) (list []int, ok bool) {
	l := ledge{p.after.limits, map[string]int64{}}
	for group, left := range p.after.units {
		l.units[group] = left
	}
	fits := func() bool {
		n, _ := p.allowed(&l.limits, o.Offering, 1, priority)
		return n == 1 && l.units[o.QuotaGroup] >= o.QuotaUnits
	}
	for _, n := range p.spares {
		if fits() {
			break
		}
		i := p.in.Instances[n]
		if p.kept[n] && p.keptFor[n] >= int16(priority) {
			continue
		}
		if bound, _ := p.allowed(&l.limits, o.Offering, 1, priority); bound == 1 && i.QuotaGroup != o.QuotaGroup {
			continue // the quota alone is in the way
		}
		l.without(i)
		list = append(list, n)
	}
	if !fits() {
		return nil, false
	}
	for k := len(list) - 1; k >= 0; k-- { // those that turned out not to matter stay
		i := p.in.Instances[list[k]]
		if l.with(i); fits() {
			list = slices.Delete(list, k, k+1)
		} else {
			l.without(i)
		}
	}
	return list, true
}

// lacksUnits tells other pools of what the class lacks, if it is a quota.
func (p *plan) lacksUnits(c *class, priority int) {
	for _, at := range p.offersFor(c) {
		o := &p.offers[at]
		n, _ := p.allowed(&p.after.limits, o.Offering, (c.left+c.whole(&o.size)-1)/c.whole(&o.size), priority)
		short := int64(n)*o.QuotaUnits - max(0, p.after.units[o.QuotaGroup])
		if n > 0 && short > 0 {
			p.out.Short = append(p.out.Short, Shortage{o.QuotaGroup, short, priority})
			return
		}
	}
}

// yield sends idle machines away whose quota other pools lack for work that is more urgent than all that could use them.
func (p *plan) yield() {
	if p.in.Policy.PauseDestroys {
		return
	}
	for _, s := range p.in.Short {
		p.findSpares()
		left := s.Units
		for _, n := range p.spares {
			i := p.in.Instances[n]
			if left <= 0 {
				break
			}
			if i.QuotaGroup != s.Group || p.kept[n] && p.keptFor[n] >= int16(s.Priority) || p.acted[i.ID] {
				continue
			}
			left -= i.QuotaUnits
			p.dismiss(i, "nothing needs it, and work of another pool waits for the quota of %s", s.Group)
		}
	}
}

// surplusAgain is how soon a purchase that waits for room is looked at again, should nothing happen.
const surplusAgain = 5 * time.Second
