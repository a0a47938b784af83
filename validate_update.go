package drover

import "github.com/drover-project/drover/internal/validation"

// validateRollOut refuses what only jobs that stay have: what ends by itself is neither rolled out nor moved.
func (g *TaskGroup) validateRollOut(v *validation.Report, j *Job, at string) {
	stays := j.Type == JobTypeService || j.Type == JobTypeSystem
	v.Check(stays || g.Update == nil, at+".Update", "only service and system jobs can have one, not %s", j.Type)
	v.Check(j.Type == JobTypeService || g.Migrate == nil, at+".Migrate", "only service jobs can have one, not %s", j.Type)
}

// validateUpdate checks an update block. MaxParallel 0 switches roll-outs off, and then the times have no meaning. They
// must nest: healthy for long enough, before the deadline for health, before that for progress.
func (g *TaskGroup) validateUpdate(v *validation.Report, j *Job, at string) {
	u := g.Update
	if u == nil {
		return
	}
	v.Check(*u.MaxParallel >= 0, at+".MaxParallel", "must not be negative, got %d", *u.MaxParallel)
	v.Check(u.Stagger >= 0, at+".Stagger", "must not be negative, got %v", u.Stagger)
	v.Check(u.Canary >= 0, at+".Canary", "must not be negative, got %d", u.Canary)
	v.Check(j.Type != JobTypeSystem || u.Canary <= 100, at+".Canary", "is a percentage of the nodes in a system job: at most 100, got %d",
		u.Canary)
	v.Check(!u.AutoPromote || u.Canary > 0, at+".AutoPromote", "needs Canary > 0")
	switch u.HealthCheck {
	case "checks", "task_states", "manual":
	default:
		v.Addf(at+".HealthCheck", "must be checks, task_states or manual, got %q", u.HealthCheck)
	}
	if *u.MaxParallel == 0 {
		return
	}
	v.Check(*u.MinHealthyTime >= 0, at+".MinHealthyTime", "must not be negative")
	v.Check(*u.MinHealthyTime < u.HealthyDeadline, at+".MinHealthyTime", "must be less than HealthyDeadline (%v), got %v", u.HealthyDeadline,
		*u.MinHealthyTime)
	v.Check(*u.ProgressDeadline == 0 || u.HealthyDeadline < *u.ProgressDeadline, at+".ProgressDeadline",
		"must be 0 or more than HealthyDeadline (%v), got %v", u.HealthyDeadline, *u.ProgressDeadline)
}

// validate checks a migrate block; nil is fine.
func (m *MigrateStrategy) validate(v *validation.Report, at string) {
	if m == nil {
		return
	}
	v.Check(*m.MaxParallel >= 0, at+".MaxParallel", "must not be negative, got %d", *m.MaxParallel)
	v.Check(m.HealthCheck == "checks" || m.HealthCheck == "task_states", at+".HealthCheck", "must be checks or task_states, got %q",
		m.HealthCheck)
	v.Check(*m.MinHealthyTime >= 0, at+".MinHealthyTime", "must not be negative")
	v.Check(*m.MinHealthyTime < m.HealthyDeadline, at+".MinHealthyTime", "must be less than HealthyDeadline (%v), got %v", m.HealthyDeadline,
		*m.MinHealthyTime)
}
