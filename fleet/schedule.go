package fleet

import (
	"strconv"
	"strings"
	"time"

	"github.com/drover-project/drover"
)

// cronTimes is a parsed cron line: one bit a value of each field.
type cronTimes struct{ minute, hour, day, month, weekday uint64 }

var cronFields = [5]struct {
	name     string
	min, max int
}{{"minute", 0, 59}, {"hour", 0, 23}, {"day of month", 1, 31}, {"month", 1, 12}, {"day of week", 0, 7}}

func parseCron(line string) (cronTimes, error) {
	var c cronTimes
	fields := strings.Fields(line)
	if len(fields) != 5 {
		return c, drover.Errorf(drover.Invalid, "must have five fields (minute hour day month weekday), got %d in %q", len(fields), line)
	}
	for i, to := range []*uint64{&c.minute, &c.hour, &c.day, &c.month, &c.weekday} {
		bits, ok := cronBits(fields[i], cronFields[i].min, cronFields[i].max)
		if !ok {
			return c, drover.Errorf(drover.Invalid, "%s must be from %d to %d, as 5, 1-5, */10 or 1,3, got %q", cronFields[i].name, cronFields[i].min, cronFields[i].max, fields[i])
		}
		*to = bits
	}
	c.weekday |= c.weekday >> 7 // 7 is Sunday too
	return c, nil
}

func cronBits(field string, lowest, highest int) (bits uint64, ok bool) {
	for part := range strings.SplitSeq(field, ",") {
		body, stepText, stepped := strings.Cut(part, "/")
		step := 1
		if stepped {
			n, err := strconv.Atoi(stepText)
			if err != nil || n < 1 {
				return 0, false
			}
			step = n
		}
		from, to, valid := cronRange(body, lowest, highest, stepped)
		if !valid {
			return 0, false
		}
		for v := from; v <= to; v += step {
			bits |= 1 << v
		}
	}
	return bits, true
}

func cronRange(body string, lowest, highest int, stepped bool) (from, to int, ok bool) {
	if body == "*" {
		return lowest, highest, true
	}
	a, b, ranged := strings.Cut(body, "-")
	from, err := strconv.Atoi(a)
	if err != nil {
		return 0, 0, false
	}
	to = from
	if stepped {
		to = highest
	}
	if ranged {
		if to, err = strconv.Atoi(b); err != nil {
			return 0, 0, false
		}
	}
	return from, to, from >= lowest && to <= highest && from <= to
}

// on reports whether the cron line names t's minute. As in cron, a day matches if either day field that is set does.
func (c cronTimes) on(t time.Time) bool {
	if c.minute>>t.Minute()&1 == 0 || c.hour>>t.Hour()&1 == 0 || c.month>>int(t.Month())&1 == 0 {
		return false
	}
	day, weekday := c.day>>t.Day()&1 == 1, c.weekday>>int(t.Weekday())&1 == 1
	allDays, allWeekdays := c.day == 1<<32-2, c.weekday&127 == 127
	if allDays || allWeekdays {
		return day && weekday
	}
	return day || weekday
}

// ActiveAt reports whether now lies in a period of the schedule. A schedule that Validate refuses is never active.
func (s *Schedule) ActiveAt(now time.Time) bool {
	c, err := parseCron(s.Cron)
	if err != nil {
		return false
	}
	loc, err := time.LoadLocation(s.Zone)
	if err != nil {
		return false
	}
	t := now.In(loc).Truncate(time.Minute)
	for earliest := now.Add(-s.Duration); t.After(earliest); t = t.Add(-time.Minute) {
		if c.on(t) {
			return true
		}
	}
	return false
}
