package sim

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/drover-project/drover/fleet"
)

// Prices returns what is sold at now's prices: spot prices walk by the hour around the configured one. Machines keep
// the price at which they were bought.
func (c *Cloud) Prices(now time.Time) []fleet.Offering {
	list := make([]fleet.Offering, len(c.cfg.Offerings))
	hour := now.Unix() / 3600
	for i, o := range c.cfg.Offerings {
		if o.Market == fleet.MarketSpot && c.cfg.PriceStep > 0 {
			o.Price *= math.Exp(c.cfg.PriceStep * walk(c.cfg.Seed, uint64(i), hour))
			c.supply[o.Key].offering.Price = o.Price
		}
		list[i] = o
	}
	return list
}

// walk is a bounded walk that can be computed for any hour: the mean of the last day's steps, scaled.
func walk(seed, stream uint64, hour int64) float64 {
	sum := 0.0
	for h := hour - 24; h < hour; h++ {
		sum += rand.New(rand.NewPCG(seed^stream*0x9e3779b97f4a7c15, uint64(h))).NormFloat64()
	}
	return sum / math.Sqrt(24)
}
