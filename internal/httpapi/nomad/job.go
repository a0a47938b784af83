package nomad

import (
	"io"
	"net/http"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/tables"
)

const jobRoot = "/v1/job/"

// actionRefused answers who runs an action of a job.
const actionRefused = "running job actions is not implemented yet; use exec"

// jobHandle answers for one job.
type jobHandle func(w http.ResponseWriter, r *http.Request, id string) error

func (f *Face) jobReads() map[string]jobHandle {
	return map[string]jobHandle{
		"":             f.readJob,
		"/allocations": f.jobAllocations,
		"/evaluations": f.jobEvaluations,
		"/summary":     f.jobSummary,
		"/versions":    f.jobVersions,
		"/deployments": f.jobDeployments,
		"/deployment":  f.jobDeployment,
		"/scale":       f.scaleStatus,
		"/services":    f.jobServices,
		"/actions":     f.jobActions,
		"/submission":  f.jobSubmission,
		"/action":      absentJob(actionRefused),
	}
}

func (f *Face) jobWrites() map[string]jobHandle {
	return map[string]jobHandle{
		"":                  f.register,
		"/plan":             f.planJob,
		"/evaluate":         f.evaluateJob,
		"/revert":           f.revertJob,
		"/stable":           f.setJobStable,
		"/dispatch":         f.dispatchJob,
		"/dispatch/payload": f.dispatchPayload,
		"/periodic/force":   f.forcePeriodic,
		"/scale":            f.scaleJob,
	}
}

func (f *Face) jobGet(w http.ResponseWriter, r *http.Request) error {
	return route(w, r, f.jobReads(), f.jobWrites())
}

func (f *Face) jobPut(w http.ResponseWriter, r *http.Request) error {
	if id, name, ok := taggedPath(r); ok {
		return f.tagVersion(w, r, id, name)
	}
	return route(w, r, f.jobWrites(), f.jobReads())
}

// route picks the handler by the longest suffix of the path. A suffix that only the other methods know is 405, so
// that PUT /v1/job/x/summary does not register a job.
func route(w http.ResponseWriter, r *http.Request, table, others map[string]jobHandle) error {
	rest := strings.TrimPrefix(r.URL.EscapedPath(), jobRoot)
	suffix, known := "", true
	for _, t := range []map[string]jobHandle{table, others} {
		for s := range t {
			if len(s) > len(suffix) && len(rest) > len(s) && strings.HasSuffix(rest, s) {
				suffix = s
				_, known = table[s]
			}
		}
	}
	if !known {
		return errMethod()
	}
	id := unescape(strings.TrimSuffix(rest, suffix))
	if id == "" {
		return drover.Errorf(drover.Invalid, "Missing job ID")
	}
	return table[suffix](w, r, id)
}

func (f *Face) jobDelete(w http.ResponseWriter, r *http.Request) error {
	if id, name, ok := taggedPath(r); ok {
		return f.untagVersion(w, r, id, name)
	}
	id := unescape(strings.TrimPrefix(r.URL.EscapedPath(), jobRoot))
	req := drover.DeregisterRequest{Namespace: namespaceOf(r), ID: id}
	var err error
	if req.Purge, err = httpapi.BoolParam(r, "purge", false); err != nil {
		return err
	}
	if req.NoShutdownDelay, err = httpapi.BoolParam(r, "no_shutdown_delay", false); err != nil {
		return err
	}
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
	return f.written(w, r, o, evalAnswer(o))
}

func (f *Face) readJob(w http.ResponseWriter, r *http.Request, id string) error {
	return single(f, w, r, source{table: tables.Jobs, key: tables.JobKey(namespaceOf(r), id)}, "job", func(q query, s Snapshot) (*drover.Job, uint64) {
		if j := s.Job(q.namespace, id); j != nil {
			return j, j.ModifyIndex
		}
		return nil, 0
	})
}

func (f *Face) jobSummary(w http.ResponseWriter, r *http.Request, id string) error {
	return single(f, w, r, source{table: tables.JobSummaries, key: tables.JobKey(namespaceOf(r), id)}, "job", func(q query, s Snapshot) (*drover.JobSummary, uint64) {
		if j := s.JobSummary(q.namespace, id); j != nil {
			return j, j.ModifyIndex
		}
		return nil, 0
	})
}

func (f *Face) planJob(w http.ResponseWriter, r *http.Request, id string) error {
	b, err := f.decodeJob(r)
	if err != nil {
		return err
	}
	if id != b.Job.ID {
		return drover.Errorf(drover.Invalid, "Job ID does not match")
	}
	p, err := f.Intake.PlanJob(r.Context(), b.Job, b.Diff)
	if err != nil {
		return err
	}
	return f.reply(w, r, struct {
		drover.Preview
		Index uint64
	}{p, f.State.Snapshot().Index()})
}

func (f *Face) evaluateJob(w http.ResponseWriter, r *http.Request, id string) error {
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
	o, err := f.Intake.EvaluateJob(r.Context(), namespaceOf(r), id, b.EvalOptions.ForceReschedule)
	if err != nil {
		return err
	}
	return f.written(w, r, o, evalAnswer(o))
}

func (f *Face) revertJob(w http.ResponseWriter, r *http.Request, id string) error {
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
	o, err := f.Intake.RevertJob(r.Context(), drover.RevertRequest{
		Namespace: namespaceOf(r), ID: id, Version: b.JobVersion, EnforcePriorVersion: b.EnforcePriorVersion,
	})
	if err != nil {
		return err
	}
	return f.written(w, r, o, evalAnswer(o))
}

func (f *Face) setJobStable(w http.ResponseWriter, r *http.Request, id string) error {
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
	o, err := f.Intake.SetJobStable(r.Context(), namespaceOf(r), id, b.JobVersion, b.Stable)
	if err != nil {
		return err
	}
	return f.written(w, r, o, struct{ JobModifyIndex, Index uint64 }{o.JobModifyIndex, o.Index})
}

func (f *Face) dispatchJob(w http.ResponseWriter, r *http.Request, id string) error {
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
	return f.dispatch(w, r, drover.DispatchRequest{ID: id, Payload: b.Payload, Meta: b.Meta, IDPrefixTemplate: b.IdPrefixTemplate, Priority: b.Priority})
}

// dispatchPayload takes the raw body as the payload.
func (f *Face) dispatchPayload(w http.ResponseWriter, r *http.Request, id string) error {
	payload, err := io.ReadAll(r.Body) // bounded by the route
	if err != nil {
		return drover.Errorf(drover.Invalid, "reading the payload: %w", err)
	}
	return f.dispatch(w, r, drover.DispatchRequest{ID: id, Payload: payload})
}

func (f *Face) dispatch(w http.ResponseWriter, r *http.Request, req drover.DispatchRequest) error {
	req.Namespace, req.IdempotencyToken = namespaceOf(r), r.URL.Query().Get("idempotency_token")
	o, err := f.Intake.DispatchJob(r.Context(), req)
	if err != nil {
		return err
	}
	return f.written(w, r, o, struct {
		DispatchedJobID string
		EvalID          string
		EvalCreateIndex uint64
		JobCreateIndex  uint64
		Index           uint64
	}{o.DispatchedJobID, o.EvalID, o.EvalCreateIndex, o.JobCreateIndex, o.Index})
}

func (f *Face) forcePeriodic(w http.ResponseWriter, r *http.Request, id string) error {
	o, err := f.Intake.ForcePeriodic(r.Context(), namespaceOf(r), id)
	if err != nil {
		return err
	}
	return f.written(w, r, o, evalAnswer(o))
}
