package nomad

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"net/http"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/tables"
)

func (f *Face) listJobs(w http.ResponseWriter, r *http.Request) error {
	meta, err := httpapi.BoolParam(r, "meta", false)
	if err != nil {
		return err
	}
	return lister[*drover.Job, *drover.JobListStub]{
		on:    []source{{table: tables.Jobs}, {table: tables.JobSummaries}},
		items: func(q query, s Snapshot) iter.Seq[*drover.Job] { return s.Jobs(q.namespace, q.prefix) },
		id:    func(j *drover.Job) string { return j.Namespace + "." + j.ID },
		view: func(j *drover.Job, s Snapshot) *drover.JobListStub {
			stub := j.Stub(s.JobSummary(j.Namespace, j.ID))
			if meta {
				stub.Meta = j.Meta
			}
			return stub
		},
	}.serve(f, w, r)
}

// jobBody is the body of register, plan and validate.
type jobBody struct {
	Job            *drover.Job
	EnforceIndex   bool
	JobModifyIndex uint64
	PreserveCounts bool
	EvalPriority   int
	Diff           bool
	Namespace      string

	PreserveResources bool
	Submission        *drover.JobSubmission
}

// decodeJob reads the body and completes the job's namespace: the job's own, else the body's, else the query's.
func (f *Face) decodeJob(r *http.Request) (jobBody, error) {
	var b jobBody
	if err := f.checkRegion(r.URL.Query().Get("region")); err != nil {
		return b, err
	}
	if err := httpapi.DecodeJSON(r, &b); err != nil {
		return b, err
	}
	if b.Job == nil {
		return b, drover.Errorf(drover.Invalid, "Job must be specified")
	}
	if b.EvalPriority < 0 || b.EvalPriority > drover.MaxPriority {
		return b, drover.Errorf(drover.Invalid, "EvalPriority: %d is not from 1 to %d", b.EvalPriority, drover.MaxPriority)
	}
	if b.Job.Namespace == "" {
		b.Job.Namespace = namespaceOf(r)
		if !r.URL.Query().Has("namespace") && b.Namespace != "" {
			b.Job.Namespace = b.Namespace
		}
	}
	if b.Job.Namespace == "*" {
		return b, drover.Errorf(drover.Invalid, "Job.Namespace: \"*\" is not the name of one namespace")
	}
	if b.Job.Region != "" {
		if err := f.checkRegion(b.Job.Region); err != nil {
			return b, err
		}
	}
	wholeNumbers(b.Job)
	return b, nil
}

// wholeNumbers makes int64 of the whole numbers in free-form parts, where JSON has only one kind of number, so that
// the same job from HCL and from JSON is the same.
func wholeNumbers(j *drover.Job) {
	for _, g := range j.TaskGroups {
		if g == nil {
			continue
		}
		if g.Scaling != nil {
			whole(g.Scaling.Policy)
		}
		for _, t := range g.Tasks {
			if t != nil {
				whole(t.Config)
			}
		}
	}
}

func whole(v any) any {
	switch v := v.(type) {
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return int64(v)
		}
	case []any:
		for i := range v {
			v[i] = whole(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = whole(v[k])
		}
	}
	return v
}

func (f *Face) registerJob(w http.ResponseWriter, r *http.Request) error { return f.register(w, r, "") }

// register registers the job of the body; id, if given, is the path's and must be the job's.
func (f *Face) register(w http.ResponseWriter, r *http.Request, id string) error {
	b, err := f.decodeJob(r)
	if err != nil {
		return err
	}
	if b.Job.ID == "" {
		return drover.Errorf(drover.Invalid, "Job ID hasn't been provided")
	}
	if id != "" && id != b.Job.ID {
		return drover.Errorf(drover.Invalid, "Job ID does not match name in request path")
	}
	o, err := f.Intake.RegisterJob(r.Context(), drover.RegisterRequest{
		Job: b.Job, EnforceIndex: b.EnforceIndex, JobModifyIndex: b.JobModifyIndex, PreserveCounts: b.PreserveCounts,
		PreserveResources: b.PreserveResources, EvalPriority: b.EvalPriority, Submission: b.Submission,
	})
	if err != nil {
		return err
	}
	return f.written(w, r, o, evalAnswer(o))
}

// evalResult answers what leads to an evaluation.
type evalResult struct {
	EvalID          string
	EvalCreateIndex uint64
	JobModifyIndex  uint64
	Warnings        string
	queryMeta
}

func evalAnswer(o drover.Outcome) evalResult {
	return evalResult{o.EvalID, o.EvalCreateIndex, o.JobModifyIndex, o.Warnings, queryMeta{Index: o.Index, KnownLeader: true}}
}

func (f *Face) validateJob(w http.ResponseWriter, r *http.Request) error {
	b, err := f.decodeJob(r)
	if err != nil {
		return err
	}
	answer := struct {
		DriverConfigValidated bool
		ValidationErrors      []string
		Error                 string
		Warnings              string
	}{Warnings: strings.Join(b.Job.Unheeded(), "; ")}
	var found []error
	if err := f.Intake.ValidateJob(r.Context(), b.Job); err != nil {
		found = append(found, err)
	}
	asked, err := f.validateConfigs(b.Job)
	if err != nil {
		found = append(found, err)
	}
	answer.DriverConfigValidated = asked
	for _, err := range found {
		answer.ValidationErrors = append(answer.ValidationErrors, faults(err)...)
	}
	if len(found) > 0 {
		answer.Error = errors.Join(found...).Error()
	}
	return f.reply(w, r, answer)
}

// validateConfigs has the drivers look at their tasks' configurations. It reports whether all of them were asked. Pools
// are left out: their tasks get commands later.
func (f *Face) validateConfigs(j *drover.Job) (all bool, err error) {
	if f.ValidateTask == nil {
		return false, nil
	}
	j = drover.Copy(j)
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

func (f *Face) parseJob(w http.ResponseWriter, r *http.Request) error {
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
	return f.reply(w, r, job)
}
