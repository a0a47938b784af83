package fleet

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/cron"
)

// parseCron reads a cron line of five fields. Errors: Invalid, with the field that is wrong.
func parseCron(line string) (*cron.Line, error) {
	fields := strings.Fields(line)
	if len(fields) != 5 {
		return nil, drover.Errorf(drover.Invalid, "must have five fields (minute hour day month weekday), got %d in %q", len(fields), line)
	}
	if slices.ContainsFunc(strings.Split(fields[2], ","), func(s string) bool { return s == "*/1" || s == "1/1" || s == "1-31" }) {
		fields[2] = "*" // else the parser takes it for a restriction
	}
	fields[4] = weekdays(fields[4])
	c, err := cron.Parse(strings.Join(fields, " "))
	if err != nil {
		return nil, drover.Errorf(drover.Invalid, "must be numbers, as 5, 1-5, */10 or 1,3, or names, in %q: %w", line, err)
	}
	return c, nil
}

// weekdays writes spans of weekdays as lists, and all of them as *. The parser knows 7 for a Sunday, but takes it for a Saturday
// at the end of a span, and an all that is not written as * for a restriction.
func weekdays(field string) string {
	var list []string
	seen := map[int]bool{}
	for part := range strings.SplitSeq(field, ",") {
		days, ok := weekdaySpan(part)
		if !ok {
			list = append(list, part) // with a name, or wrong
		}
		for _, day := range days {
			seen[day] = true
			list = append(list, strconv.Itoa(day))
		}
	}
	if len(seen) == 7 {
		return "*"
	}
	return strings.Join(list, ",")
}

// weekdaySpan reads day, first-last, first-last/step, first/step, * or */step; ok is false for anything else.
func weekdaySpan(part string) (days []int, ok bool) {
	span, text, stepped := strings.Cut(part, "/")
	first, last, isSpan := strings.Cut(strings.Replace(span, "*", "0-6", 1), "-")
	if !isSpan {
		last = first
	}
	if stepped && !isSpan {
		last = "7"
	}
	if !stepped {
		text = "1"
	}
	from, err := strconv.Atoi(first)
	to, err2 := strconv.Atoi(last)
	step, err3 := strconv.Atoi(text)
	if errors.Join(err, err2, err3) != nil || step < 1 || from > to || to > 7 {
		return nil, false
	}
	for day := from; day <= to; day += step {
		days = append(days, day%7)
	}
	return days, true
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
	begun := c.Next(now.Add(-s.Duration).In(loc))
	return !begun.IsZero() && !begun.After(now)
}
