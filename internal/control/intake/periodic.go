package intake

import (
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/cron"
)

// NextLaunch returns when a periodic job is next due after the time; zero if never. Specifications that cannot be
// parsed are never due; CheckPeriodic says so before they are stored.
func NextLaunch(p *drover.PeriodicConfig, after time.Time) time.Time {
	if p == nil || (p.Enabled != nil && !*p.Enabled) {
		return time.Time{}
	}
	loc, err := time.LoadLocation(p.TimeZone)
	if err != nil {
		return time.Time{}
	}
	var next time.Time
	// The earliest time of all specifications counts.
	for _, spec := range specs(p) {
		line, err := cron.Parse(spec)
		if err != nil {
			continue
		}
		if at := line.Next(after.In(loc)); !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next
}

// maxSpecs bounds a job's specifications: to find out when one is due that never is takes a fifth of a second.
const maxSpecs = 64

// CheckPeriodic reports the first specification that cannot be parsed. Errors: Invalid.
func CheckPeriodic(p *drover.PeriodicConfig) error {
	if p == nil || p.SpecType != "cron" {
		return nil
	}
	if n := len(specs(p)); n > maxSpecs {
		return drover.Errorf(drover.Invalid, "job.Periodic.Specs: %d are more than the %d that a job may have", n, maxSpecs)
	}
	for _, spec := range specs(p) {
		if _, err := cron.Parse(spec); err != nil {
			return drover.Errorf(drover.Invalid, "job.Periodic.Spec: cannot parse %q: %w", spec, err)
		}
	}
	return nil
}

// specs returns the one specification and the list together; a job may have both.
func specs(p *drover.PeriodicConfig) []string {
	if p.Spec != "" {
		return append([]string{p.Spec}, p.Specs...)
	}
	return p.Specs
}
