package jobs

import (
	"io"
	"net/http"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/nomad/answer"
)

// jobDelete answers DELETE /v1/job/ID, which stops the job (purge=true forgets it, too), and that of a version's tag.
func (f *face) jobDelete(w http.ResponseWriter, r *http.Request) error {
	if id, name, ok := taggedPath(r); ok {
		return f.untagVersion(w, r, id, name)
	}
	id := unescape(strings.TrimPrefix(r.URL.EscapedPath(), jobRoot))
	req := drover.DeregisterRequest{Namespace: answer.Namespace(r), ID: id}
	var err error
	if req.Purge, err = httpapi.BoolParam(r, "purge", false); err != nil {
		return err
	}
	if req.NoShutdownDelay, err = httpapi.BoolParam(r, "no_shutdown_delay", false); err != nil {
		return err
	}
	// A job that is in several regions at once is refused, so to stop it in all of them is to stop it.
	if _, err = httpapi.BoolParam(r, "global", false); err != nil {
		return err
	}
	// 0 stands for the job's own priority.
	priority, err := httpapi.IntParam(r, "eval_priority", 0)
	if err != nil {
		return err
	}
	if priority < 0 || priority > drover.MaxPriority {
		return drover.Errorf(drover.Invalid, "parameter \"eval_priority\" is %d, but must be from 1 to %d", priority, drover.MaxPriority)
	}
	req.EvalPriority = int(priority)
	o, err := f.Intake.DeregisterJob(r.Context(), req)
	if drover.CodeOf(err) == drover.NotFound { // it is as asked for: Nomad answers so too
		o, err = drover.Outcome{Index: f.State.Snapshot().Index()}, nil
	}
	if err != nil {
		return err
	}
	return f.Written(w, r, o, evalAnswer(o))
}

// evaluateJob answers PUT /v1/job/ID/evaluate: the scheduler looks at the job again.
func (f *face) evaluateJob(w http.ResponseWriter, r *http.Request, id string) error {
	var b struct {
		JobID       string
		EvalOptions struct{ ForceReschedule bool }
	}
	if err := httpapi.DecodeOptionalJSON(r, &b); err != nil {
		return err
	}
	if b.JobID != "" && b.JobID != id {
		return drover.Errorf(drover.Invalid, "JobID not same as job name")
	}
	o, err := f.Intake.EvaluateJob(r.Context(), answer.Namespace(r), id, b.EvalOptions.ForceReschedule)
	if err != nil {
		return err
	}
	return f.Written(w, r, o, evalAnswer(o))
}

// revertJob answers PUT /v1/job/ID/revert: an earlier version is registered as the newest.
func (f *face) revertJob(w http.ResponseWriter, r *http.Request, id string) error {
	var b struct {
		JobID               string
		JobVersion          uint64
		EnforcePriorVersion *uint64
	}
	if err := httpapi.DecodeJSON(r, &b); err != nil {
		return err
	}
	if b.JobID != "" && b.JobID != id {
		return drover.Errorf(drover.Invalid, "Job ID does not match")
	}
	o, err := f.Versions.RevertJob(r.Context(), drover.RevertRequest{
		Namespace: answer.Namespace(r), ID: id, Version: b.JobVersion, EnforcePriorVersion: b.EnforcePriorVersion,
	})
	if err != nil {
		return err
	}
	return f.Written(w, r, o, evalAnswer(o))
}

// setJobStable answers PUT /v1/job/ID/stable: a version counts as one to return to, or no longer.
func (f *face) setJobStable(w http.ResponseWriter, r *http.Request, id string) error {
	var b struct {
		JobID      string
		JobVersion uint64
		Stable     bool
	}
	if err := httpapi.DecodeJSON(r, &b); err != nil {
		return err
	}
	if b.JobID != "" && b.JobID != id {
		return drover.Errorf(drover.Invalid, "Job ID does not match")
	}
	o, err := f.Versions.SetJobStable(r.Context(), answer.Namespace(r), id, b.JobVersion, b.Stable)
	if err != nil {
		return err
	}
	return f.Written(w, r, o, struct{ JobModifyIndex, Index uint64 }{o.JobModifyIndex, o.Index})
}

// dispatchJob answers PUT /v1/job/ID/dispatch: a parameterized job gets a child with the payload and metadata.
func (f *face) dispatchJob(w http.ResponseWriter, r *http.Request, id string) error {
	var b struct {
		JobID            string
		Payload          []byte
		Meta             map[string]string
		IdPrefixTemplate string
		Priority         int
	}
	if err := httpapi.DecodeOptionalJSON(r, &b); err != nil {
		return err
	}
	if b.JobID != "" && b.JobID != id {
		return drover.Errorf(drover.Invalid, "Job ID does not match")
	}
	return f.dispatch(w, r, drover.DispatchRequest{
		ID: id, Payload: b.Payload, Meta: b.Meta, IDPrefixTemplate: b.IdPrefixTemplate, Priority: b.Priority,
	})
}

// dispatchPayload takes the raw body as the payload.
func (f *face) dispatchPayload(w http.ResponseWriter, r *http.Request, id string) error {
	payload, err := io.ReadAll(r.Body) // bounded by the route
	if err != nil {
		return drover.Errorf(drover.Invalid, "reading the payload: %w", err)
	}
	return f.dispatch(w, r, drover.DispatchRequest{ID: id, Payload: payload})
}

// dispatch adds what both forms of the request take from the query. The idempotency token makes a repeated request
// answer with the first child instead of starting another one.
func (f *face) dispatch(w http.ResponseWriter, r *http.Request, req drover.DispatchRequest) error {
	req.Namespace, req.IdempotencyToken = answer.Namespace(r), r.URL.Query().Get("idempotency_token")
	o, err := f.Intake.DispatchJob(r.Context(), req)
	if err != nil {
		return err
	}
	return f.Written(w, r, o, struct {
		DispatchedJobID string
		EvalID          string
		EvalCreateIndex uint64
		JobCreateIndex  uint64
		Index           uint64
	}{o.DispatchedJobID, o.EvalID, o.EvalCreateIndex, o.JobCreateIndex, o.Index})
}

// forcePeriodic answers PUT /v1/job/ID/periodic/force: a periodic job gets a child now.
func (f *face) forcePeriodic(w http.ResponseWriter, r *http.Request, id string) error {
	o, err := f.Intake.ForcePeriodic(r.Context(), answer.Namespace(r), id)
	if err != nil {
		return err
	}
	return f.Written(w, r, o, evalAnswer(o))
}
