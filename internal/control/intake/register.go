package intake

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/deepcopy"
	"github.com/drover-project/drover/internal/unheeded"
)

// RegisterJob stores a job and has it evaluated, unless it only is a template (periodic, parameterized). The request's
// job is not changed. Errors: Invalid with all faults of the job, Conflict when the index is another, Forbidden while
// registration is switched off.
func (in *Intake) RegisterJob(ctx context.Context, r drover.RegisterRequest) (drover.Outcome, error) {
	if r.Job == nil {
		return drover.Outcome{}, drover.Errorf(drover.Invalid, "missing job for registration")
	}
	if err := in.tooImportant("EvalPriority", r.EvalPriority); err != nil {
		return drover.Outcome{}, err
	}
	j, warnings, err := in.admit(ctx, r, false)
	if err != nil {
		return drover.Outcome{}, err
	}
	return in.register(ctx, j, registration{RegisterRequest: r, by: drover.TriggerJobRegister, warnings: warnings})
}

// admit returns the canonical job as it would be stored, and what its author is warned of. Errors: as RegisterJob.
func (in *Intake) admit(ctx context.Context, r drover.RegisterRequest, planned bool) (j *drover.Job, warnings []string, err error) {
	j = in.canonical(r.Job)
	if err := in.pin(ctx, j); err != nil {
		return nil, nil, err
	}
	s := in.deps.Store.Snapshot()
	if err := in.faults(j, s); err != nil {
		return nil, nil, err
	}
	if cfg := s.SchedulerConfig(); cfg != nil && cfg.RejectJobRegistration {
		return nil, nil, drover.Errorf(drover.Forbidden, "job registration, dispatch, and scale are disabled by the scheduler configuration")
	}
	warnings = unheeded.Warnings(j)
	unheeded.Forget(j)
	old := s.Job(j.Namespace, j.ID)
	if err := checkUpdate(old, j); err != nil {
		return nil, nil, err
	}
	if r.PreserveCounts && old != nil {
		keepCounts(old, j)
	}
	if r.PreserveResources && old != nil {
		keepResources(old, j)
	}
	more, err := in.admitted(ctx, j, planned)
	if err != nil {
		return nil, nil, err
	}
	return j, append(warnings, more...), nil
}

// clearServerFields forgets what only the server sets.
func clearServerFields(j *drover.Job) {
	j.Status, j.StatusDescription, j.Stable, j.Version = "", "", false, 0
	j.CreateIndex, j.ModifyIndex, j.JobModifyIndex, j.SubmitTime = 0, 0, 0, 0
	j.VersionTag, j.NomadTokenID = nil, ""
	j.Dispatched, j.DispatchIdempotencyToken, j.Payload, j.ParentID = false, "", nil, ""
	for _, g := range j.TaskGroups {
		if g != nil && g.Pool != nil {
			g.Pool.Demand = 0
		}
	}
}

// checkUpdate refuses what no update of a job may change: its type, and whether it is periodic or parameterized. A
// dispatched child cannot be changed at all. old is nil for a new job. Errors: Invalid.
func checkUpdate(old, j *drover.Job) error {
	switch {
	case old == nil:
		return nil
	case old.Type != j.Type:
		return drover.Errorf(drover.Invalid, "cannot update job from type %q to %q", old.Type, j.Type)
	case old.Periodical() && !j.Periodical():
		return drover.Errorf(drover.Invalid, "cannot update periodic job to being non-periodic")
	case !old.Periodical() && j.Periodical():
		return drover.Errorf(drover.Invalid, "cannot update non-periodic job to being periodic")
	case old.ParameterizedJob != nil && j.ParameterizedJob == nil:
		return drover.Errorf(drover.Invalid, "cannot update parameterized job to being non-parameterized")
	case old.ParameterizedJob == nil && j.ParameterizedJob != nil:
		return drover.Errorf(drover.Invalid, "cannot update non-parameterized job to being parameterized")
	case old.Dispatched:
		return drover.Errorf(drover.Invalid, "job can't be submitted with 'Dispatched' set")
	}
	return nil
}

// keepCounts gives the groups of j the counts of the stored job, which an autoscaler may have set since the file was
// written. For a warm pool that is its size. Groups that became a pool, or are none any more, keep the file's count.
func keepCounts(old, j *drover.Job) {
	for _, g := range j.TaskGroups {
		o := old.Group(g.Name)
		if o == nil || (o.Pool == nil) != (g.Pool == nil) {
			continue
		}
		g.Count = o.Count
		if g.Pool != nil {
			g.Pool.Size = o.Pool.Size
		}
	}
}

// keepResources gives the tasks of j the resources of the stored job. Tasks and groups are found by their names.
func keepResources(old, j *drover.Job) {
	for _, g := range j.TaskGroups {
		o := old.Group(g.Name)
		if o == nil {
			continue
		}
		for _, t := range g.Tasks {
			if was := o.Task(t.Name); was != nil {
				t.Resources = deepcopy.Of(was.Resources)
			}
		}
	}
}

// registration is a request, and why it was made.
type registration struct {
	drover.RegisterRequest
	by       string                 // what triggers the evaluation
	scaling  *command.ScalingRecord // of a scaling action
	warnings []string               // what its author is warned of
}

// register commits an admitted job.
func (in *Intake) register(ctx context.Context, j *drover.Job, r registration) (drover.Outcome, error) {
	c, warnings := in.registering(j, r)
	o, _, err := in.commit(ctx, c, c)
	o.Warnings = strings.Join(warnings, "; ")
	return o, err
}

// sayHowMany is the cluster version from which registrations say how many versions are kept.
const sayHowMany = 3

// registering makes the command that registers an admitted job, and what its author is warned of.
func (in *Intake) registering(j *drover.Job, r registration) (c *command.RegisterJob, warnings []string) {
	now := in.now().UnixNano()
	if j.SubmitTime == 0 {
		j.SubmitTime = now
	}
	c = &command.RegisterJob{Job: j, EnforceIndex: r.EnforceIndex, JobModifyIndex: r.JobModifyIndex, Time: now, Scaling: r.scaling}
	if cluster.VersionOf(in.deps.Store.Snapshot().Cluster()) >= sayHowMany {
		c.Versions = in.deps.Versions
	}
	warnings = r.warnings
	if r.Submission != nil && r.Submission.Source != "" {
		kept, warning := in.keepable(r.Submission)
		if c.Submission = kept; warning != "" {
			warnings = append(warnings, warning)
		}
	}
	// A template runs nothing itself, so there is nothing to evaluate.
	if !j.Periodical() && !j.Parameterized() {
		c.Eval = in.maker().Job(j, r.by)
		if r.EvalPriority > 0 {
			c.Eval.Priority = r.EvalPriority
		}
		if r.scaling != nil {
			r.scaling.Event.EvalID = &c.Eval.ID
		}
	}
	return c, warnings
}

// commit proposes the entry that holds the registration, and returns what became of it, with the job that is stored.
func (in *Intake) commit(ctx context.Context, entry command.Command, c *command.RegisterJob) (drover.Outcome, *drover.Job, error) {
	index, result, err := in.deps.Log.Propose(ctx, entry)
	if err != nil {
		return drover.Outcome{}, nil, err
	}
	o := drover.Outcome{Index: index, JobModifyIndex: index, JobCreateIndex: index}
	// A registration that changes nothing leaves the job's index where it was.
	stored, ok := result.(*drover.Job)
	if ok && stored != nil {
		o.JobModifyIndex, o.JobCreateIndex = stored.JobModifyIndex, stored.CreateIndex
	}
	if c.Eval != nil {
		o.EvalID, o.EvalCreateIndex = c.Eval.ID, index
	}
	return o, stored, nil
}

// keepable returns the source if it is to be kept, else why it is not.
func (in *Intake) keepable(s *drover.JobSubmission) (kept *drover.JobSubmission, warning string) {
	limit := drover.MaxJobSource
	if in.deps.MaxSource != nil {
		limit = *in.deps.MaxSource
	}
	switch size := s.Size(); {
	case limit == 0: // switched off: nobody waits for it
		return nil, ""
	case size > limit:
		return nil, fmt.Sprintf("the job's source is not kept: it has %d bytes, more than %d (server.job_max_source_size)", size, limit)
	}
	return s, ""
}

// DeregisterJob stops a job and its allocations, and with Purge forgets it. Errors: NotFound, Invalid (priority).
func (in *Intake) DeregisterJob(ctx context.Context, r drover.DeregisterRequest) (drover.Outcome, error) {
	if err := in.tooImportant("eval_priority", r.EvalPriority); err != nil {
		return drover.Outcome{}, err
	}
	j, err := in.job(r.Namespace, r.ID)
	if err != nil {
		return drover.Outcome{}, err
	}
	m := in.maker()
	c := &command.DeregisterJob{
		Namespace: r.Namespace, ID: r.ID, Purge: r.Purge, NoShutdownDelay: r.NoShutdownDelay, Time: m.Now,
	}
	if cluster.VersionOf(in.deps.Store.Snapshot().Cluster()) >= sayHowMany {
		c.Versions = cmp.Or(in.deps.Versions, drover.TrackedJobVersions)
	}
	if !j.Periodical() && !j.Parameterized() {
		c.Eval = m.Job(j, drover.TriggerJobDeregister)
		if r.EvalPriority > 0 {
			c.Eval.Priority = r.EvalPriority
		}
	}
	o, err := in.proposeWith(ctx, c, c.Eval)
	o.JobModifyIndex = o.Index
	return o, err
}

// EvaluateJob has the job looked at again; with forceReschedule its failed allocations are replaced at once, whatever
// their reschedule policy. Errors: NotFound, Invalid for periodic and parameterized jobs.
func (in *Intake) EvaluateJob(ctx context.Context, namespace, id string, forceReschedule bool) (drover.Outcome, error) {
	j, err := in.job(namespace, id)
	switch {
	case err != nil:
		return drover.Outcome{}, err
	case j.Periodical():
		return drover.Outcome{}, drover.Errorf(drover.Invalid, "can't evaluate periodic job")
	case j.Parameterized():
		return drover.Outcome{}, drover.Errorf(drover.Invalid, "can't evaluate parameterized job")
	}
	m := in.maker()
	eval := m.Job(j, drover.TriggerJobRegister)
	c := &command.TransitionAllocs{
		Transitions: map[string]drover.DesiredTransition{}, Evals: []*drover.Evaluation{eval}, Time: m.Now,
	}
	if forceReschedule {
		for a := range in.deps.Store.Snapshot().AllocationsByJob(namespace, id) {
			if a.ClientStatus == drover.AllocClientFailed && !a.ServerTerminal() && a.NextAllocation == "" {
				c.Transitions[a.ID] = drover.DesiredTransition{ForceReschedule: new(true)}
			}
		}
	}
	o, err := in.proposeWith(ctx, c, eval)
	o.JobModifyIndex = j.JobModifyIndex
	return o, err
}
