package jobspec

import (
	"strconv"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/constraint"
)

// constraint decodes a constraint block, in the long or a short form.
func (d *decoder) constraint(b *hclsyntax.Block, c *constraint.Constraint) {
	d.comparison(b, &c.LTarget, &c.Operand, &c.RTarget, nil)
}

// affinity decodes an affinity block: as a constraint, with a weight.
func (d *decoder) affinity(b *hclsyntax.Block, a *constraint.Affinity) {
	d.comparison(b, &a.LTarget, &a.Operand, &a.RTarget, attrs{"weight": &a.Weight})
}

// comparison reads attribute, operator and value, and the short forms: version = ">= 1", distinct_hosts = true, ….
func (d *decoder) comparison(b *hclsyntax.Block, left, operand, right *string, more attrs) {
	names := []string{"regexp", "version", "semver", "set_contains", "set_contains_any", "set_contains_all", "distinct_property"}
	short := map[string]*string{}
	table := attrs{"attribute": left, "operator": operand, "value": right}
	for _, name := range names {
		short[name] = new(string)
		table[name] = short[name]
	}
	var distinct *bool
	table["distinct_hosts"] = &distinct
	for name, target := range more {
		table[name] = target
	}
	d.fill(b.Body, table, nil)
	// A short form is named after its operator. Of several the last one of the list counts.
	for _, name := range names {
		text := short[name]
		if _, given := b.Body.Attributes[name]; !given {
			continue
		}
		*operand = name
		if name == "distinct_property" {
			*left = *text
		} else {
			*right = *text
		}
	}
	// The value is kept as text, because "false" switches the constraint off.
	if distinct != nil {
		*operand, *right = "distinct_hosts", strconv.FormatBool(*distinct)
	}
}

// spread decodes a spread block. The value of a target is its label, or its value argument.
func (d *decoder) spread(b *hclsyntax.Block, s *constraint.Spread) {
	d.fill(b.Body, attrs{"attribute": &s.Attribute, "weight": &s.Weight}, blocks{
		"target": list(&s.SpreadTarget, func(b *hclsyntax.Block, t *constraint.SpreadTarget) {
			if len(b.Labels) == 1 {
				t.Value = b.Labels[0]
			}
			d.fill(b.Body, attrs{"value": &t.Value, "percent": &t.Percent}, nil)
		}),
	})
}

// restart decodes how often the node restarts a task in place.
func (d *decoder) restart(b *hclsyntax.Body, p *drover.RestartPolicy) {
	d.fill(b, attrs{
		"attempts": &p.Attempts, "interval": &p.Interval, "delay": &p.Delay, "mode": &p.Mode,
		"render_templates": &p.RenderTemplates,
	}, nil)
}

// reschedule decodes when the scheduler replaces a failed allocation. Of a group that has none, the job's is used.
func (d *decoder) reschedule(b *hclsyntax.Body, p *drover.ReschedulePolicy) {
	d.fill(b, attrs{
		"attempts": &p.Attempts, "interval": &p.Interval, "delay": &p.Delay, "delay_function": &p.DelayFunction,
		"max_delay": &p.MaxDelay, "unlimited": &p.Unlimited,
	}, nil)
}

// update decodes how a new version is rolled out. Arguments that are not given are inherited from the job's block when
// the job is canonicalized.
func (d *decoder) update(b *hclsyntax.Body, u *drover.UpdateStrategy) {
	d.fill(b, attrs{
		"stagger": &u.Stagger, "max_parallel": &u.MaxParallel, "health_check": &u.HealthCheck,
		"min_healthy_time": &u.MinHealthyTime, "healthy_deadline": &u.HealthyDeadline, "progress_deadline": &u.ProgressDeadline,
		"canary": &u.Canary, "auto_revert": &u.AutoRevert, "auto_promote": &u.AutoPromote,
	}, nil)
}

// migrate decodes how fast a drain may move the allocations of a group.
func (d *decoder) migrate(b *hclsyntax.Body, m *drover.MigrateStrategy) {
	d.fill(b, attrs{
		"max_parallel": &m.MaxParallel, "health_check": &m.HealthCheck, "min_healthy_time": &m.MinHealthyTime,
		"healthy_deadline": &m.HealthyDeadline,
	}, nil)
}

// periodic decodes when a job is launched. Whether the cron specifications are valid is checked on registration.
func (d *decoder) periodic(b *hclsyntax.Body, p *drover.PeriodicConfig) {
	d.fill(b, attrs{
		"enabled": &p.Enabled, "cron": &p.Spec, "crons": &p.Specs, "prohibit_overlap": &p.ProhibitOverlap,
		"time_zone": &p.TimeZone,
	}, nil)
}
