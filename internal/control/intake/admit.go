package intake

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/go-version"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/constraint"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/deepcopy"
	"github.com/drover-project/drover/internal/servicecheck"
	"github.com/drover-project/drover/internal/tenant"
	"github.com/drover-project/drover/internal/unheeded"
	"github.com/drover-project/drover/internal/validation"
	"github.com/drover-project/drover/service"
)

// ValidateJob reports everything that would keep the job from being registered, joined, as one Invalid error, and
// changes nothing. Errors: Invalid.
func (in *Intake) ValidateJob(ctx context.Context, job *drover.Job) error {
	if job == nil {
		return drover.Errorf(drover.Invalid, "missing job for validation")
	}
	j := in.canonical(job)
	if err := in.pin(ctx, j); err != nil {
		return err
	}
	if err := in.faults(j, in.deps.Store.Snapshot()); err != nil {
		return err
	}
	_, err := in.admitted(ctx, j, true)
	return err
}

// canonical returns a copy as it would be stored.
func (in *Intake) canonical(given *drover.Job) *drover.Job {
	j := deepcopy.Of(given)
	if p := in.deps.ServiceProvider; p != "" {
		provide(j, p)
	}
	if j.NodePool == "" {
		j.NodePool = tenant.Pool(in.deps.Store.Snapshot().Namespace(cmp.Or(j.Namespace, drover.DefaultNamespace)))
	}
	j.Priority = cmp.Or(j.Priority, in.deps.DefaultPriority)
	j.Canonicalize()
	servicecheck.Canonicalize(j)
	clearServerFields(j)
	return j
}

// provide gives the provider to services that name none.
func provide(j *drover.Job, provider string) {
	services := func(list []*service.Service) {
		for _, s := range list {
			if s != nil && s.Provider == "" {
				s.Provider = provider
			}
		}
	}
	for _, g := range j.TaskGroups {
		if g == nil {
			continue
		}
		services(g.Services)
		for _, t := range g.Tasks {
			if t != nil {
				services(t.Services)
			}
		}
	}
}

// faults joins what the job itself shows, and what only the state does.
func (in *Intake) faults(j *drover.Job, s *store.Snapshot) error {
	var errs []error
	const priority = "job.Priority"
	if err := in.tooImportant(priority, j.Priority); err != nil {
		errs = append(errs, err)
	}
	if err := j.Validate(); err != nil { // which does not know the bound of these servers
		errs = append(errs, slices.DeleteFunc(joined(err), func(e error) bool { return strings.HasPrefix(e.Error(), priority+":") })...)
	} else if err := in.tooMany(j); err != nil {
		errs = append(errs, err)
	}
	errs = append(errs, unheeded.Refused(j)...)
	if err := servicecheck.Faults(j); err != nil {
		errs = append(errs, joined(err)...)
	}
	if err := CheckPeriodic(j.Periodic); err != nil {
		errs = append(errs, err)
	}
	ns := s.Namespace(j.Namespace)
	errs = append(errs, tenant.Refused(ns, j)...)
	if ns == nil {
		errs = append(errs, fmt.Errorf("job.Namespace: job %q is in nonexistent namespace %q", j.ID, j.Namespace))
	}
	if s.NodePool(j.NodePool) == nil {
		errs = append(errs, fmt.Errorf("job.NodePool: job %q is in nonexistent node pool %q", j.ID, j.NodePool))
	}
	errs = append(errs, unknownDrivers(j, s)...)
	errs = append(errs, wrongVersions(j)...)
	if len(errs) == 0 {
		return nil
	}
	return drover.Errorf(drover.Invalid, "job validation: %w", errors.Join(errs...))
}

// refused says what of a stored job its namespace or the admission rules do not allow by now: nothing new may begin with it. Errors:
// Invalid.
func (in *Intake) refused(ctx context.Context, j *drover.Job) (warnings []string, err error) {
	if errs := tenant.Refused(in.deps.Store.Snapshot().Namespace(j.Namespace), j); len(errs) > 0 {
		return nil, drover.Errorf(drover.Invalid, "job validation: %w", errors.Join(errs...))
	}
	return in.admitted(ctx, j, false)
}

// tooImportant says that a priority, which field has, is negative, or above the highest here; 0 is none. Errors: Invalid.
func (in *Intake) tooImportant(field string, priority int) error {
	if priority >= 0 && priority <= in.maxPriority() {
		return nil
	}
	return drover.Errorf(drover.Invalid, "%s: must be from 1 to %d, got %d (server.job_max_priority)", field, in.maxPriority(), priority)
}

// maxPriority is the highest priority here.
func (in *Intake) maxPriority() int { return cmp.Or(in.deps.MaxPriority, drover.DefaultMaxPriority) }

// tooMany says that the job asks for more allocations than it may.
func (in *Intake) tooMany(j *drover.Job) error {
	limit, total := drover.DefaultMaxCount, 0
	if in.deps.MaxCount != nil {
		limit = *in.deps.MaxCount
	}
	if limit == 0 || j.Type == drover.JobTypeSystem || j.Type == drover.JobTypeSysBatch {
		return nil
	}
	for _, g := range j.TaskGroups {
		total += *g.Count
	}
	if total <= limit {
		return nil
	}
	return drover.Errorf(drover.Invalid, "job: asks for %d allocations, the limit is %d (server.job_max_count)", total, limit)
}

// joined takes an error apart that holds several.
func joined(err error) []error {
	for e := err; e != nil; e = errors.Unwrap(e) {
		if several, ok := e.(interface{ Unwrap() []error }); ok {
			return slices.Clone(several.Unwrap())
		}
	}
	return []error{err}
}

// wellKnown are drivers of ours and of Nomad: a node that has one may come later, so a job may wait for it.
func wellKnown() map[string]bool {
	return map[string]bool{
		"raw_exec": true, "sandbox": true, "docker": true, "fake": true, "mock_driver": true, "exec": true, "exec2": true,
		"java": true, "qemu": true, "podman": true, "containerd-driver": true, "virt": true,
	}
}

// unknownDrivers reports drivers that no node has and nobody knows: a slip of the pen would wait for ever.
func unknownDrivers(j *drover.Job, s *store.Snapshot) (errs []error) {
	known, here := wellKnown(), map[string]bool{}
	for n := range s.Nodes("") {
		for name, d := range n.Drivers {
			known[name] = true
			here[name] = here[name] || d != nil && d.Healthy
		}
	}
	maps.DeleteFunc(here, func(_ string, healthy bool) bool { return !healthy })
	each(j, func(at string, t *drover.Task) {
		if t.Driver == "" || known[t.Driver] {
			return
		}
		meant := ""
		if near := validation.Nearest(t.Driver, slices.Sorted(maps.Keys(known))); near != "" {
			meant = fmt.Sprintf("; did you mean %q?", near)
		}
		have := cmp.Or(strings.Join(slices.Sorted(maps.Keys(here)), ", "), "none")
		errs = append(errs, fmt.Errorf("%s.Driver: no node has the driver %q (they have: %s)%s", at, t.Driver, have, meant))
	})
	return errs
}

// each calls f for every task with its path.
func each(j *drover.Job, f func(at string, t *drover.Task)) {
	for _, g := range j.TaskGroups {
		if g == nil {
			continue
		}
		for _, t := range g.Tasks {
			if t != nil {
				f(fmt.Sprintf("job.group[%s].task[%s]", g.Name, t.Name), t)
			}
		}
	}
}

// wrongVersions reports constraints on versions that are none.
func wrongVersions(j *drover.Job) (errs []error) {
	check := func(at string, list []*constraint.Constraint) {
		for i, c := range list {
			if c == nil || c.Operand != "version" && c.Operand != "semver" {
				continue
			}
			if _, err := version.NewConstraint(c.RTarget); err != nil && !strings.Contains(c.RTarget, "${") {
				errs = append(errs, fmt.Errorf("%s.Constraints[%d].RTarget: %q is no constraint on versions such as \">= 1.2, < 2.0\"", at, i,
					c.RTarget))
			}
		}
	}
	check("job", j.Constraints)
	for _, g := range j.TaskGroups {
		if g != nil {
			check(fmt.Sprintf("job.group[%s]", g.Name), g.Constraints)
		}
	}
	each(j, func(at string, t *drover.Task) { check(at, t.Constraints) })
	return errs
}
