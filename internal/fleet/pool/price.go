package pool

import (
	"time"

	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/fleet/ledger"
)

// SetPrices takes over what the cloud tells that offerings cost now, per hour and by key; what it does not tell of
// keeps its price. It reports how many changed. Where the cloud does so too, machines that run cost the new price from
// now on.
func (c *Core) SetPrices(now time.Time, prices map[string]float64) (changed int) {
	for _, p := range c.pools {
		for _, o := range p.policy.Wanted() {
			price, told := prices[o.Key]
			if before, known := c.prices[o.Key]; known {
				o.Price = before
			}
			if !told || price <= 0 || price == o.Price { // equal prices are equal
				continue
			}
			changed++
			c.prices[o.Key] = price
		}
	}
	if changed == 0 {
		return 0
	}
	for _, p := range c.pools {
		p.recomputeOfferings()
	}
	if c.cfg.Caps.Reprices {
		for _, e := range c.table { // each by itself
			if price, told := c.prices[e.Offering]; told && e.Market == fleet.MarketSpot {
				c.reprice(now, e, price)
			}
		}
	}
	return changed
}

// reprice has a machine cost another price from now on.
func (c *Core) reprice(now time.Time, e *entry, price float64) {
	if e.Price == price || !e.stopped.IsZero() { // equal prices are equal
		return
	}
	if !e.CreatedAt.IsZero() {
		e.CostBefore, e.RepricedAt = ledger.Of(e.Instance, now), now
	}
	// The sums only contain confirmed machines; the others add their price in confirm.
	if e.sure {
		c.cost += price - e.Price
		if e.pool != nil {
			e.pool.cost += price - e.Price
		}
	}
	e.Price = price
}
