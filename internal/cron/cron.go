package cron

import (
	"time"

	"github.com/hashicorp/cronexpr"
)

// Line is a parsed cron line. Not for use by several goroutines at once.
type Line struct{ expr *cronexpr.Expression }

// Parse reads a line of five to seven fields, or an alias such as @daily. Errors: the field that is wrong.
func Parse(line string) (*Line, error) {
	expr, err := cronexpr.Parse(line)
	if err != nil {
		return nil, err
	}
	return &Line{expr}, nil
}

// Next returns the first time after a time that the line names, in that time's zone; zero if there is none. To find that
// out takes up to a fifth of a second.
func (l *Line) Next(after time.Time) (at time.Time) {
	defer func() {
		// The library takes a span that ends before it begins, as dec-feb, for no month at all, and then reads the first of
		// none. Such a line names no time.
		if recover() != nil {
			at = time.Time{}
		}
	}()
	return l.expr.Next(after)
}
