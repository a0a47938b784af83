package jobs

import (
	"cmp"
	"net/http"
	"strconv"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/nomad/answer"
	"github.com/drover-project/drover/internal/policy"
)

// jobBody is the body of register, plan and validate.
type jobBody struct {
	Job *drover.Job
	// EnforceIndex asks to register only if the stored job's modify index is JobModifyIndex; 0 means that no such
	// job exists.
	EnforceIndex   bool
	JobModifyIndex uint64
	// PreserveCounts keeps the stored counts of groups, so that a job file does not undo what an autoscaler has
	// set.
	PreserveCounts bool
	// EvalPriority is that of the evaluation alone; 0 takes the job's.
	EvalPriority int
	// Diff is used by plan only: it asks for the fields that differ from the stored job.
	Diff      bool
	Namespace string

	// PreserveResources does the same as PreserveCounts, for the resources of tasks.
	PreserveResources bool
	Submission        *drover.JobSubmission

	// These are sent by Nomad's clients, and say nothing here: the request itself does, or no rule can be overridden.
	Region, SecretID string
	PolicyOverride   bool

	unknown string // a field that is none; "" if there is none
}

// warned are warnings, with that of the unknown field.
func (b *jobBody) warned(warnings string) string {
	if b.unknown == "" {
		return warnings
	}
	said := strconv.Quote(b.unknown) + " has no effect: there is no such field; others may be unknown, too"
	if warnings == "" {
		return said
	}
	return warnings + "; " + said
}

// decodeJob reads the body and completes the job's namespace: the job's own, else the body's, else the query's. Its region is the
// request's, else its own, else this one. The caller needs the capability in that namespace. Errors: Invalid; Forbidden; Nomad's for a
// region that is not this one.
func (f *face) decodeJob(r *http.Request, need policy.Capability) (jobBody, error) {
	var b jobBody
	unknown, err := httpapi.DecodeKnownJSON(r, &b)
	if err != nil {
		return b, err
	}
	b.unknown = unknown
	if b.Job == nil {
		return b, drover.Errorf(drover.Invalid, "Job must be specified")
	}
	if b.EvalPriority < 0 || b.EvalPriority > drover.MaxPriority {
		return b, drover.Errorf(drover.Invalid, "EvalPriority: %d is not from 1 to %d", b.EvalPriority, drover.MaxPriority)
	}
	if b.Job.Namespace == "" {
		b.Job.Namespace = answer.Namespace(r)
		if !r.URL.Query().Has("namespace") && b.Namespace != "" {
			b.Job.Namespace = b.Namespace
		}
	}
	// "*" means all namespaces in reads, and would be an ordinary name in the state.
	if b.Job.Namespace == "*" {
		return b, drover.Errorf(drover.Invalid, "Job.Namespace: \"*\" is not the name of one namespace")
	}
	httpapi.About(r.Context(), b.Job.ID)
	if err := httpapi.Allow(r.Context(), b.Job.Namespace, need); err != nil {
		return b, err
	}
	if b.Job.Region = cmp.Or(httpapi.Region(r), regionOf(b.Job.Region), f.Region); b.Job.Region != f.Region {
		return b, f.CheckRegion(b.Job.Region)
	}
	restoreIntegers(b.Job)
	return b, nil
}

// jobRegion is the region that the body's job names.
func jobRegion(r *http.Request) (string, error) {
	region, err := httpapi.BodyKey("Job", "Region")(r)
	return regionOf(region), err
}

// regionOf is the region in which a job that names this one runs; "" is that of the agent which is asked. It is so for "global",
// too: job files of Nomad's have that where they name none.
func regionOf(named string) string {
	if named == drover.DefaultRegion {
		return ""
	}
	return named
}

// registerJob answers PUT /v1/jobs.
func (f *face) registerJob(w http.ResponseWriter, r *http.Request) error { return f.register(w, r, "") }

// register registers the job of the body; id, if given, is the path's and must be the job's.
func (f *face) register(w http.ResponseWriter, r *http.Request, id string) error {
	b, err := f.decodeJob(r, policy.RegisterJob)
	if err != nil {
		return err
	}
	if err := mayMount(r, b.Job); err != nil {
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
	o.Warnings = b.warned(o.Warnings)
	return f.Written(w, r, o, evalAnswer(o))
}

// mayMount refuses host volumes that the caller may not give to a job. Errors: Forbidden.
func mayMount(r *http.Request, j *drover.Job) error {
	caller := httpapi.CallerOf(r.Context())
	for _, g := range j.TaskGroups {
		if g == nil {
			continue
		}
		for _, v := range g.Volumes {
			if v == nil || v.Type != "host" {
				continue
			}
			need := policy.MountReadWrite
			if v.ReadOnly {
				need = policy.MountReadOnly
			}
			if !caller.HostVolume(v.Source, need) {
				return httpapi.ErrDenied
			}
		}
	}
	return nil
}

// evalResult answers what leads to an evaluation.
type evalResult struct {
	EvalID          string
	EvalCreateIndex uint64
	JobModifyIndex  uint64
	Warnings        string
	answer.Meta
}

// evalAnswer is the answer to a write that may create an evaluation. EvalID is empty if none was needed, as for a
// periodic job, which runs only at its times.
func evalAnswer(o drover.Outcome) evalResult {
	return evalResult{o.EvalID, o.EvalCreateIndex, o.JobModifyIndex, o.Warnings, answer.NewMeta(o.Index)}
}

// planJob answers PUT /v1/job/ID/plan with what a registration would change; nothing is stored.
func (f *face) planJob(w http.ResponseWriter, r *http.Request, id string) error {
	b, err := f.decodeJob(r, policy.PlanJob)
	if err != nil {
		return err
	}
	if err := mayMount(r, b.Job); err != nil {
		return err
	}
	if id != b.Job.ID {
		return drover.Errorf(drover.Invalid, "Job ID does not match")
	}
	p, err := f.Intake.PlanJob(r.Context(), b.Job, b.Diff)
	if err != nil {
		return err
	}
	if c := httpapi.CallerOf(r.Context()); !c.Namespace(b.Job.Namespace, policy.ReadJob) && !c.Part(policy.Node, policy.Read) {
		p.Placements = nil // names of nodes are for who reads allocations there, or nodes
	}
	p.Warnings = b.warned(p.Warnings)
	return f.Reply(w, r, struct {
		drover.Preview
		Index uint64
	}{p, f.State.Snapshot().Index()})
}
