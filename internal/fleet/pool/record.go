package pool

import (
	"bytes"
	"time"

	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/fleet/ledger"
)

// Update is what the log is told beside intents: machines whose state changed, those gone included, and costs.
type Update struct {
	Changed []fleet.Instance
	Costs   []fleet.Cost
	Learned []byte // of the cloud; nil = nothing new
}

// Empty reports that there is nothing to tell.
func (u Update) Empty() bool { return len(u.Changed) == 0 && len(u.Costs) == 0 && u.Learned == nil }

// written is what the log has of a machine.
type written struct {
	state    fleet.InstanceState
	behavior fleet.IdleBehavior
	provider string
	charged  float64
	price    float64
	of       string
}

// now returns what the log should have of the machine; it is compared with written to find out what has to be recorded.
func (e *entry) now() written {
	return written{e.State, e.Behavior, e.ProviderID, e.Charged, e.Price, e.Of}
}

// learnedEvery is how often what was learned of the cloud is written down, if it changed.
const learnedEvery = time.Minute

// TakeUpdate returns what changed since the last time. Give it back with RestoreUpdate if it can't be recorded.
func (c *Core) TakeUpdate(now time.Time) Update {
	u := Update{Changed: c.ended, Costs: ledger.Sum(c.costs)}
	if now.Sub(c.wrote) >= learnedEvery {
		c.wrote = now
		if text := c.beliefs.Memory(); !bytes.Equal(text, c.learned) {
			c.learned, u.Learned = text, text
		}
	}
	c.ended, c.costs = nil, nil
	for _, p := range c.pools {
		for _, i := range p.living() {
			u.add(c.table[i.ID])
		}
	}
	for _, id := range c.orphans() {
		u.add(c.strays[id])
	}
	return u
}

// add includes the machine if the log has something else about it, and notes it as written. RestoreUpdate takes that
// back.
func (u *Update) add(e *entry) {
	if e == nil || e.State == fleet.InstancePlanned || e.written == e.now() {
		return // a planned one is recorded before it is created
	}
	e.written = e.now()
	u.Changed = append(u.Changed, *e.Instance)
}

// RestoreUpdate takes an update back that could not be recorded.
func (c *Core) RestoreUpdate(u Update) {
	c.costs = append(c.costs, u.Costs...)
	if u.Learned != nil {
		c.learned = nil
	}
	for k := range u.Changed {
		i := &u.Changed[k]
		if i.State == fleet.InstanceGone {
			c.ended = append(c.ended, *i)
		} else if e := c.table[i.ID]; e != nil {
			e.written = written{}
		}
	}
}

// Charge brings the ledger up to date with all machines that the cloud bills.
func (c *Core) Charge(now time.Time) {
	for _, p := range c.pools {
		for _, i := range p.living() {
			c.charge(now, c.table[i.ID])
		}
	}
	for _, id := range c.orphans() {
		c.charge(now, c.strays[id])
	}
}

// charge adds what the machine has cost since the last charge to the costs that go into the log, divided among the jobs
// that used it. The cost never falls: a price that drops or a clock that goes back adds zero. Who has a machine of another cluster
// pays it.
func (c *Core) charge(now time.Time, e *entry) {
	if e == nil || e.CreatedAt.IsZero() || e.Of != "" {
		return
	}
	until := now
	if !e.stopped.IsZero() {
		until = e.stopped
	}
	total := ledger.Of(e.Instance, until)
	cost := max(total-e.Charged, 0)
	c.costs = append(c.costs, e.meter.Take(now, e.Pool, cost)...)
	e.Charged += cost
}
