package pool

import "time"

// spending integrates the cost of the day.
type spending struct {
	day int64
	sum float64
	at  time.Time
}

// charge notes that machines cost perHour since the last call.
func (s *spending) charge(now time.Time, perHour float64) {
	if s.at.IsZero() {
		s.at, s.day = now, now.Unix()/86400
		return
	}
	cost := perHour * now.Sub(s.at).Hours()
	// At midnight UTC the sum starts again with the part of the interval that belongs to the new day.
	if day := now.Unix() / 86400; day != s.day {
		into := time.Duration(now.Unix()%86400) * time.Second
		s.day, s.sum = day, perHour*min(into, now.Sub(s.at)).Hours()
	} else {
		s.sum += cost
	}
	s.at = now
}

// today returns what was charged since midnight UTC.
func (s *spending) today(now time.Time) float64 {
	if now.Unix()/86400 != s.day {
		return 0
	}
	return s.sum
}

// begin starts with what a ledger has of the day.
func (s *spending) begin(now time.Time, spent float64) {
	*s = spending{day: now.Unix() / 86400, sum: spent, at: now}
}
