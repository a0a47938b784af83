package learned

import "github.com/drover-project/drover/fleet"

// interruptions is the record of one spot offering.
type interruptions struct{ hours, taken float64 }

// Interruptions returns the expected interruptions an hour: the provider's word counts as a day of watching.
func (b *Cloud) Interruptions(o *fleet.Offering) float64 {
	if o.Market != fleet.MarketSpot {
		return 0
	}
	const prior = 24
	m := b.market[o.Key]
	if m == nil {
		return o.Interrupted
	}
	return (o.Interrupted*prior + m.taken) / (prior + m.hours)
}
