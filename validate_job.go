package drover

import (
	"fmt"
	"strings"
	"time"

	"github.com/drover-project/drover/constraint"
	"github.com/drover-project/drover/internal/validation"
)

// validate looks at the whole job. A job that is too large is not looked at further: the report would be as large.
func (j *Job) validate(v *validation.Report) {
	if !j.bounded(v) {
		return
	}
	v.Check(j.ID != "", "job.ID", "must be set")
	v.ID("job.ID", j.ID)
	v.Readable("job.Name", j.Name)
	v.Check(!strings.ContainsAny(j.ID, " \x00"), "job.ID", "must not contain spaces or NUL, got %q", j.ID)
	v.Check(len(j.ID) <= 256, "job.ID", "must have at most 256 bytes")
	v.Check(j.Name != "", "job.Name", "must be set")
	v.Check(!strings.ContainsRune(j.Name, 0), "job.Name", "must not contain a NUL")
	v.Check(validation.IsName(j.Namespace), "job.Namespace", "must be 1 to 128 letters, digits, '-', '_' or '.', got %q", j.Namespace)
	v.Check(validation.IsName(j.NodePool), "job.NodePool", "must be 1 to 128 letters, digits, '-', '_' or '.', got %q", j.NodePool)
	v.Check(j.Priority >= 1 && j.Priority <= MaxPriority, "job.Priority",
		"must be from 1 to the servers' job_max_priority, which is %d unless they say otherwise, and %d at most, got %d",
		DefaultMaxPriority, MaxPriority, j.Priority)
	switch j.Type {
	case JobTypeService, JobTypeBatch, JobTypeSystem, JobTypeSysBatch:
	default:
		v.Addf("job.Type", "must be service, batch, system or sysbatch, got %q", j.Type)
	}
	for i, dc := range j.Datacenters {
		v.Check(dc != "", fmt.Sprintf("job.Datacenters[%d]", i), "must not be empty")
	}
	constraint.Validate(v, "job", j.Constraints)
	constraint.ValidateAffinities(v, "job", j.Affinities)
	constraint.ValidateSpreads(v, "job", j.Spreads)
	if j.Periodic != nil {
		j.validatePeriodic(v)
	}
	j.validateParameterized(v)
	v.Check(len(j.TaskGroups) > 0, "job.TaskGroups", "must have at least one group")
	seen := map[string]bool{}
	total := 0
	for i, g := range j.TaskGroups {
		if g == nil {
			v.Addf(fmt.Sprintf("job.TaskGroups[%d]", i), "must not be null")
			continue
		}
		v.Check(!seen[g.Name], "job.TaskGroups", "group %q is defined twice", g.Name)
		seen[g.Name] = true
		g.validate(v, j, fmt.Sprintf("job.group[%s]", validation.NameOr(g.Name, i)))
		if g.Count != nil && *g.Count > 0 {
			total += *g.Count
		}
	}
	v.Check(total <= MaxGroupCount, "job", "asks for %d allocations, the limit is %d", total, MaxGroupCount)
}

// validatePeriodic checks a periodic block. The cron lines are checked by intake, whose parser also computes the
// launches.
func (j *Job) validatePeriodic(v *validation.Report) {
	p := j.Periodic
	v.Check(j.Type == JobTypeBatch || j.Type == JobTypeSysBatch, "job.Periodic", "only batch and sysbatch jobs can be periodic")
	v.Check(p.SpecType == "cron" || p.SpecType == "test", "job.Periodic.SpecType", "must be cron, got %q", p.SpecType)
	v.Check(p.Spec != "" || len(p.Specs) > 0, "job.Periodic.Spec", "must be set")
	v.Check(p.Spec == "" || len(p.Specs) == 0, "job.Periodic", "Spec and Specs exclude each other")
	if _, err := time.LoadLocation(p.TimeZone); err != nil {
		v.Addf("job.Periodic.TimeZone", "unknown time zone %q", p.TimeZone)
	}
	v.Check(j.ParameterizedJob == nil, "job.Periodic", "a job can't be periodic and parameterized")
}

// validateParameterized checks a parameterized block. A meta key is either required or optional in a dispatch.
func (j *Job) validateParameterized(v *validation.Report) {
	p := j.ParameterizedJob
	if p == nil {
		return
	}
	v.Check(j.Type == JobTypeBatch || j.Type == JobTypeSysBatch, "job.ParameterizedJob", "only batch and sysbatch jobs can be parameterized")
	switch p.Payload {
	case "optional", "required", "forbidden":
	default:
		v.Addf("job.ParameterizedJob.Payload", "must be optional, required or forbidden, got %q", p.Payload)
	}
	optional := map[string]bool{}
	for _, k := range p.MetaOptional {
		optional[k] = true
	}
	for _, k := range p.MetaRequired {
		v.Check(!optional[k], "job.ParameterizedJob", "meta key %q is required and optional", k)
	}
}
