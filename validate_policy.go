package drover

import (
	"time"

	"github.com/drover-project/drover/internal/validation"
)

// validate checks a restart policy. Its attempts must fit into its interval with their delays; otherwise they could
// never be used up.
func (p *RestartPolicy) validate(v *validation.Report, at string) {
	v.Check(p.Mode == RestartModeFail || p.Mode == RestartModeDelay, at+".Mode", "must be fail or delay, got %q", p.Mode)
	v.Check(*p.Attempts >= 0, at+".Attempts", "must not be negative, got %d", *p.Attempts)
	v.Check(*p.Delay >= 0, at+".Delay", "must not be negative")
	v.Check(*p.Attempts == 0 || *p.Interval >= 5*time.Second, at+".Interval", "must be at least 5s, got %v", *p.Interval)
	if *p.Attempts > 0 && *p.Delay > 0 && int64(*p.Attempts) > int64(*p.Interval / *p.Delay) {
		v.Addf(at, "%d attempts with a delay of %v don't fit into the interval of %v", *p.Attempts, *p.Delay, *p.Interval)
	}
}

// validateReschedule checks a reschedule policy. The least delay and interval are Nomad's. A policy without attempts is
// off, and the rest of it is not looked at.
func (g *TaskGroup) validateReschedule(v *validation.Report, j *Job, at string) {
	p := g.ReschedulePolicy
	if p == nil {
		return
	}
	if j.Type == JobTypeSystem || j.Type == JobTypeSysBatch {
		v.Addf(at, "system and sysbatch jobs are never rescheduled: remove it")
		return
	}
	v.Check(*p.Attempts >= 0, at+".Attempts", "must not be negative")
	if *p.Attempts == 0 && !*p.Unlimited {
		return
	}
	v.Check(*p.Delay >= 5*time.Second, at+".Delay", "must be at least 5s, got %v", *p.Delay)
	switch p.DelayFunction {
	case "constant":
	case "exponential", "fibonacci":
		v.Check(*p.MaxDelay == 0 || *p.MaxDelay >= *p.Delay, at+".MaxDelay", "must be at least Delay (%v), got %v", *p.Delay, *p.MaxDelay)
	default:
		v.Addf(at+".DelayFunction", "must be constant, exponential or fibonacci, got %q", p.DelayFunction)
	}
	if !*p.Unlimited {
		v.Check(*p.Interval >= 15*time.Second, at+".Interval", "must be at least 15s, got %v", *p.Interval)
	}
}
