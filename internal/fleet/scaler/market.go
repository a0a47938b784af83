package scaler

import (
	"time"

	"github.com/drover-project/drover/fleet"
)

// interruptions is the record of one spot offering.
type interruptions struct{ hours, taken float64 }

// Interruptions returns the expected interruptions an hour: the provider's word counts as a day of watching.
func (b *Beliefs) Interruptions(o *fleet.Offering) float64 {
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

// Spending integrates the cost of the day.
type Spending struct {
	day int64
	sum float64
	at  time.Time
}

// Charge notes that machines cost perHour since the last call.
func (s *Spending) Charge(now time.Time, perHour float64) {
	if s.at.IsZero() {
		s.at, s.day = now, now.Unix()/86400
		return
	}
	cost := perHour * now.Sub(s.at).Hours()
	if day := now.Unix() / 86400; day != s.day {
		into := time.Duration(now.Unix()%86400) * time.Second
		s.day, s.sum = day, perHour*min(into, now.Sub(s.at)).Hours()
	} else {
		s.sum += cost
	}
	s.at = now
}

// Today returns the cost since midnight UTC, as far as charged.
func (s *Spending) Today(now time.Time) float64 {
	if now.Unix()/86400 != s.day {
		return 0
	}
	return s.sum
}

// Begin starts with what a ledger has of the day.
func (s *Spending) Begin(now time.Time, today float64) {
	*s = Spending{day: now.Unix() / 86400, sum: today, at: now}
}
