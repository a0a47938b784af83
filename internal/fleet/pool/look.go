package pool

import (
	"time"

	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/fleet/provider"
)

// SpentToday returns what the pool cost since midnight UTC.
func (c *Core) SpentToday(now time.Time, pool string) float64 {
	if p := c.pool(pool); p != nil {
		return p.spent.today(now)
	}
	return 0
}

// Trouble says why the cloud can't be used now, as its last answers say; "" if it can.
func (c *Core) Trouble() string { return c.trouble }

// troubled notes how a call ended that tells whether the cloud can be used at all; each change is in the audit log.
func (c *Core) troubled(now time.Time, doing string, err error) {
	was := c.trouble
	c.trouble = ""
	if err != nil {
		c.trouble = doing + ": " + err.Error()
	}
	switch c.trouble {
	case was:
	case "":
		c.audit(fleet.Audit{At: now, What: "cloud answers", Provider: c.cfg.Provider, Why: "recovered", Reason: "it can be used again"})
	default:
		c.audit(fleet.Audit{At: now, What: CloudFails, Provider: c.cfg.Provider, Why: string(provider.KindOf(err)), Reason: c.trouble})
	}
}

// NextCheck returns when the last decision about the pool wanted to be made again; zero = no need.
func (c *Core) NextCheck(pool string) time.Time {
	if p := c.pool(pool); p != nil {
		return p.last.Wake
	}
	return time.Time{}
}

// SettledAt returns until when agents have time to call home after a start, before anything is destroyed.
func (c *Core) SettledAt(pool string) time.Time {
	if p := c.pool(pool); p != nil {
		return c.started.Add(p.policy.AdoptGrace)
	}
	return c.started
}

// FirstReady returns when the first of the pool's starting machines is expected to take work; zero if none starts.
func (c *Core) FirstReady(now time.Time, pool string) (first time.Time) {
	p := c.pool(pool)
	if p == nil {
		return first
	}
	for _, i := range p.living() {
		if !i.State.Starting() {
			continue
		}
		at := i.PlannedAt.Add(c.beliefs.BootQuantile(i.Offering, i.Type, 0.5))
		if at.Before(now) {
			at = now
		}
		if first.IsZero() || at.Before(first) {
			first = at
		}
	}
	return first
}

// BootDeadline returns how long the machine has to come up.
func (c *Core) BootDeadline(i *fleet.Instance) time.Duration {
	most := 15 * time.Minute
	if p := c.pool(i.Pool); p != nil {
		most = p.policy.BootTimeout
	}
	return c.beliefs.BootDeadline(i.Offering, i.Type, most)
}

// InUse returns what machines that are not gone take of a group's quota.
func (c *Core) InUse(group string) int64 { return c.units[group] }

// PerHour returns what the pool's machines cost an hour that the cloud confirmed.
func (c *Core) PerHour(pool string) float64 {
	if p := c.pool(pool); p != nil {
		return p.cost
	}
	return 0
}
