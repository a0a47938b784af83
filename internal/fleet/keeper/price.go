package keeper

import (
	"context"
	"fmt"
	"time"

	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/fleet/pool"
	"github.com/drover-project/drover/internal/fleet/provider"
)

// lookForOfferings is how often it is looked whether pools have offerings whose price is not known.
const lookForOfferings = 5 * time.Second

// followPrices asks the cloud what its offerings cost, at the begin and then once an interval, until ctx ends. A cloud
// that does not tell prices is not asked: those of the pools count.
func (k *Keeper) followPrices(ctx context.Context, c *cloud) {
	p, ok := c.plain.(provider.Pricer)
	if !ok {
		return
	}
	every := c.cfg.PriceEvery
	asked := map[string]bool{} // what was asked for last time
	for next := (time.Time{}); ctx.Err() == nil; clock.Sleep(ctx, k.deps.Clock, min(every, lookForOfferings)) {
		offerings, news := k.floating(c.cfg.Name, asked)
		now := k.deps.Clock.Now()
		if len(offerings) == 0 || !news && now.Before(next) {
			continue
		}
		next = now.Add(every)
		if !k.askPrices(ctx, c, p, offerings) {
			next = now.Add(min(every, time.Minute))
		}
	}
}

// floating returns the provider's offerings whose prices change, and whether there are new ones among them.
func (k *Keeper) floating(providerName string, asked map[string]bool) (list []fleet.Offering, news bool) {
	for _, p := range k.policies(providerName) {
		for _, o := range p.Wanted() {
			if o.Market == fleet.MarketSpot {
				list = append(list, o)
				news = news || !asked[o.Key]
				asked[o.Key] = true
			}
		}
	}
	return list, news
}

func (k *Keeper) askPrices(ctx context.Context, c *cloud, p provider.Pricer, offerings []fleet.Offering) (ok bool) {
	callCtx, cancel := k.deps.Clock.WithTimeout(ctx, time.Minute)
	defer cancel()
	began := k.deps.Clock.Now()
	prices, err := p.Prices(callCtx, offerings)
	k.deps.Meters.Called(c.cfg.Name, "prices", k.deps.Clock.Now().Sub(began), err)
	if err != nil {
		if ctx.Err() == nil {
			k.deps.Logger.Warn("asking the cloud for its prices; those known so far count", "provider", c.cfg.Name, "error", err)
		}
		return false
	}
	_ = c.pool.Do(ctx, func(now time.Time, core *pool.Core) error { // fails only with ctx
		if n := core.SetPrices(now, prices); n > 0 {
			reason := fmt.Sprintf("%d of %d offerings of %s cost something else now", n, len(offerings), c.cfg.Name)
			k.note(fleet.Audit{At: now, What: "prices", Why: "market", Reason: reason, Count: n})
		}
		return nil
	})
	return true
}
