package jobs

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/deepcopy"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/policy"
	"github.com/drover-project/drover/internal/unheeded"
)

// validateJob answers PUT /v1/validate/job with all faults of a job: those of the rules, then those of the drivers.
func (f *face) validateJob(w http.ResponseWriter, r *http.Request) error {
	b, err := f.decodeJob(r, policy.ReadJob)
	if err != nil {
		return err
	}
	result := struct {
		DriverConfigValidated bool
		ValidationErrors      []string
		Error                 string
		Warnings              string
	}{Warnings: b.warned(strings.Join(unheeded.Warnings(b.Job), "; "))}
	var found []error
	if err := f.Intake.ValidateJob(r.Context(), b.Job); err != nil {
		found = append(found, err)
	}
	asked, err := f.validateConfigs(b.Job)
	if err != nil {
		found = append(found, err)
	}
	result.DriverConfigValidated = asked
	for _, err := range found {
		result.ValidationErrors = append(result.ValidationErrors, faults(err)...)
	}
	if len(found) > 0 {
		result.Error = errors.Join(found...).Error()
	}
	return f.Reply(w, r, result)
}

// validateConfigs has the drivers look at their tasks' configurations. It reports whether all of them were asked. Pools
// are left out: their tasks get commands later.
func (f *face) validateConfigs(j *drover.Job) (all bool, err error) {
	if f.ValidateTask == nil {
		return false, nil
	}
	// Canonicalize fills in defaults, which the caller's job must not get: its faults are reported as it was
	// written.
	j = deepcopy.Of(j)
	j.Canonicalize()
	all = true
	var errs []error
	for _, g := range j.TaskGroups {
		if g == nil || g.Pool != nil {
			continue
		}
		for _, t := range g.Tasks {
			if t == nil {
				continue
			}
			asked, err := f.ValidateTask(t)
			all = all && asked
			if err != nil {
				for _, text := range faults(err) {
					if !strings.HasPrefix(text, "unknown ") {
						text = "." + text // it begins with its key
					} else {
						text = ": " + text
					}
					errs = append(errs, fmt.Errorf("job.group[%s].task[%s].Config%s", g.Name, t.Name, text)) // a list of problems
				}
			}
		}
	}
	if len(errs) == 0 {
		return all, nil
	}
	return all, drover.Errorf(drover.Invalid, "driver configuration: %w", errors.Join(errs...))
}

// faults lists the problems that Validate joined.
func faults(err error) []string {
	for e := err; e != nil; e = errors.Unwrap(e) {
		joined, ok := e.(interface{ Unwrap() []error })
		if !ok {
			continue
		}
		list := []string{}
		for _, one := range joined.Unwrap() {
			list = append(list, one.Error())
		}
		return list
	}
	return []string{err.Error()}
}

// parseJob answers PUT /v1/jobs/parse: a job file becomes the JSON of its job.
func (f *face) parseJob(w http.ResponseWriter, r *http.Request) error {
	var b struct {
		JobHCL       string
		Variables    string
		Canonicalize bool
	}
	if err := httpapi.DecodeJSON(r, &b); err != nil {
		return err
	}
	if b.JobHCL == "" {
		return drover.Errorf(drover.Invalid, "Job spec is empty")
	}
	if f.ParseHCL == nil {
		return drover.Errorf(drover.NotImplemented, "parsing HCL is not implemented yet by this server")
	}
	job, err := f.ParseHCL(r.Context(), b.JobHCL, b.Variables, b.Canonicalize)
	if err != nil {
		return err
	}
	return f.Reply(w, r, job)
}
