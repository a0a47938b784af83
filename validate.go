package drover

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Validate reports everything that is wrong with a canonicalized job, joined, each with its path in the job, as one
// Invalid error; nil if it can be registered. Drivers check Task.Config themselves.
func (j *Job) Validate() error {
	v := &validation{}
	j.validate(v)
	if len(v.errs) == 0 {
		return nil
	}
	return Errorf(Invalid, "job validation: %w", errors.Join(v.errs...))
}

type validation struct{ errs []error }

func (v *validation) addf(path, format string, args ...any) {
	v.errs = append(v.errs, fmt.Errorf("%s: %s", path, fmt.Sprintf(format, args...)))
}

func (v *validation) check(ok bool, path, format string, args ...any) {
	if !ok {
		v.addf(path, format, args...)
	}
}

// plainName is ^[a-zA-Z0-9._-]{1,128}$, by hand: this package is linked into every drover-init, where a regular
// expression made at start costs half a millisecond and 120 kB.
func plainName(s string) bool {
	other := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '.' && r != '_' && r != '-'
	}
	return len(s) >= 1 && len(s) <= 128 && strings.IndexFunc(s, other) < 0
}

func (j *Job) validate(v *validation) {
	if !j.bounded(v) {
		return
	}
	v.check(j.ID != "", "job.ID", "must be set")
	v.id("job.ID", j.ID)
	v.readable("job.Name", j.Name)
	v.check(!strings.ContainsAny(j.ID, " \x00"), "job.ID", "must not contain spaces or NUL, got %q", j.ID)
	v.check(len(j.ID) <= 256, "job.ID", "must have at most 256 bytes")
	v.check(j.Name != "", "job.Name", "must be set")
	v.check(!strings.ContainsRune(j.Name, 0), "job.Name", "must not contain a NUL")
	v.check(plainName(j.Namespace), "job.Namespace", "must be 1 to 128 letters, digits, '-', '_' or '.', got %q", j.Namespace)
	v.check(plainName(j.NodePool), "job.NodePool", "must be 1 to 128 letters, digits, '-', '_' or '.', got %q", j.NodePool)
	v.check(j.Priority >= 1 && j.Priority <= MaxPriority, "job.Priority", "must be from 1 to %d, got %d", MaxPriority, j.Priority)
	switch j.Type {
	case JobTypeService, JobTypeBatch, JobTypeSystem, JobTypeSysBatch:
	default:
		v.addf("job.Type", "must be service, batch, system or sysbatch, got %q", j.Type)
	}
	for i, dc := range j.Datacenters {
		v.check(dc != "", fmt.Sprintf("job.Datacenters[%d]", i), "must not be empty")
	}
	v.check(j.Multiregion == nil, "job.Multiregion", "is not supported: register the job in each region")
	validateConstraints(v, "job", j.Constraints)
	validateAffinities(v, "job", j.Affinities)
	validateSpreads(v, "job", j.Spreads)
	if j.Periodic != nil {
		j.validatePeriodic(v)
	}
	j.validateParameterized(v)
	v.check(len(j.TaskGroups) > 0, "job.TaskGroups", "must have at least one group")
	seen := map[string]bool{}
	total := 0
	for i, g := range j.TaskGroups {
		if g == nil {
			v.addf(fmt.Sprintf("job.TaskGroups[%d]", i), "must not be null")
			continue
		}
		v.check(!seen[g.Name], "job.TaskGroups", "group %q is defined twice", g.Name)
		seen[g.Name] = true
		g.validate(v, j, fmt.Sprintf("job.group[%s]", nameOr(g.Name, i)))
		if g.Count != nil && *g.Count > 0 {
			total += *g.Count
		}
	}
	v.check(total <= MaxGroupCount, "job", "asks for %d allocations, the limit is %d", total, MaxGroupCount)
}

func (j *Job) validatePeriodic(v *validation) {
	p := j.Periodic
	v.check(j.Type == JobTypeBatch || j.Type == JobTypeSysBatch, "job.Periodic", "only batch and sysbatch jobs can be periodic")
	v.check(p.SpecType == "cron" || p.SpecType == "test", "job.Periodic.SpecType", "must be cron, got %q", p.SpecType)
	v.check(p.Spec != "" || len(p.Specs) > 0, "job.Periodic.Spec", "must be set")
	v.check(p.Spec == "" || len(p.Specs) == 0, "job.Periodic", "Spec and Specs exclude each other")
	if _, err := time.LoadLocation(p.TimeZone); err != nil {
		v.addf("job.Periodic.TimeZone", "unknown time zone %q", p.TimeZone)
	}
	v.check(j.ParameterizedJob == nil, "job.Periodic", "a job can't be periodic and parameterized")
}

func (j *Job) validateParameterized(v *validation) {
	p := j.ParameterizedJob
	if p == nil {
		return
	}
	v.check(j.Type == JobTypeBatch || j.Type == JobTypeSysBatch, "job.ParameterizedJob", "only batch and sysbatch jobs can be parameterized")
	switch p.Payload {
	case "optional", "required", "forbidden":
	default:
		v.addf("job.ParameterizedJob.Payload", "must be optional, required or forbidden, got %q", p.Payload)
	}
	optional := map[string]bool{}
	for _, k := range p.MetaOptional {
		optional[k] = true
	}
	for _, k := range p.MetaRequired {
		v.check(!optional[k], "job.ParameterizedJob", "meta key %q is required and optional", k)
	}
}

func nameOr(name string, i int) string {
	if name == "" {
		return fmt.Sprint(i)
	}
	if !readable(name) {
		return strconv.Quote(name)
	}
	return name
}
