package intake

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/deepcopy"
)

// MaxPayload bounds a dispatched job's payload, in bytes.
const MaxPayload = 16 << 10

const maxIDPrefix = 128 // bytes of what goes into the ids of dispatched jobs

// DispatchJob starts a child of a parameterized job. While a child with the request's idempotency token is stored, the
// answer is that child's: the state machine decides, so that this holds over restarts and changes of leader. Errors:
// NotFound, Invalid (not parameterized, stopped, payload or meta not as declared), TooLarge, Forbidden.
func (in *Intake) DispatchJob(ctx context.Context, r drover.DispatchRequest) (drover.Outcome, error) {
	parent, err := in.job(r.Namespace, r.ID)
	if err != nil {
		return drover.Outcome{}, err
	}
	if err := in.checkDispatch(parent, r); err != nil {
		return drover.Outcome{}, err
	}
	if cfg := in.deps.Store.Snapshot().SchedulerConfig(); cfg != nil && cfg.RejectJobRegistration {
		return drover.Outcome{}, drover.Errorf(drover.Forbidden,
			"job registration, dispatch, and scale are disabled by the scheduler configuration")
	}
	if r.IdempotencyToken != "" {
		s := in.deps.Store.Snapshot()
		if first := s.DispatchedJob(parent.Namespace, parent.ID, r.IdempotencyToken); first != nil {
			return dispatched(s, first), nil // most repetitions need no entry of the log
		}
	}
	child := in.dispatchedChild(parent, r)
	warnings, err := in.refused(ctx, child)
	if err != nil {
		return drover.Outcome{}, err
	}
	c, warnings := in.registering(child, registration{
		RegisterRequest: drover.RegisterRequest{EnforceIndex: true}, by: drover.TriggerJobRegister, warnings: warnings,
	})
	var entry command.Command = c
	if r.IdempotencyToken != "" {
		entry = &command.DispatchJob{Register: *c}
	}
	o, stored, err := in.commit(ctx, entry, c)
	if drover.CodeOf(err) == drover.NotImplemented {
		o, stored, err = in.commitOnce(ctx, c)
	}
	if err != nil {
		return drover.Outcome{}, err
	}
	if stored == nil && r.IdempotencyToken != "" { // through another server: the state has it, the answer not always
		stored = in.deps.Store.Snapshot().DispatchedJob(child.Namespace, parent.ID, r.IdempotencyToken)
	}
	if stored != nil && stored.ID != child.ID { // another dispatch with the token was earlier in the log
		return dispatched(in.deps.Store.Snapshot(), stored), nil
	}
	o.DispatchedJobID, o.Warnings = child.ID, strings.Join(warnings, "; ")
	return o, nil
}

// commitOnce registers the child of a dispatch with a token, unless there is one, while not all servers of the cluster read
// DispatchJob. The leader answers dispatches: for as long as this server leads, no token dispatches twice.
func (in *Intake) commitOnce(ctx context.Context, c *command.RegisterJob) (drover.Outcome, *drover.Job, error) {
	in.dispatching.Lock()
	defer in.dispatching.Unlock()
	if first := in.deps.Store.Snapshot().DispatchedJob(c.Job.Namespace, c.Job.ParentID, c.Job.DispatchIdempotencyToken); first != nil {
		return drover.Outcome{}, first, nil
	}
	return in.commit(ctx, c, c)
}

// dispatched is the answer for a child that was started before: that of the first dispatch, as far as its evaluation
// is still there.
func dispatched(s *store.Snapshot, child *drover.Job) drover.Outcome {
	o := drover.Outcome{
		Index: s.Index(), JobModifyIndex: child.JobModifyIndex, JobCreateIndex: child.CreateIndex, DispatchedJobID: child.ID,
	}
	for e := range s.EvaluationsByJob(child.Namespace, child.ID) {
		if o.EvalID == "" || e.CreateIndex < o.EvalCreateIndex {
			o.EvalID, o.EvalCreateIndex = e.ID, e.CreateIndex
		}
	}
	return o
}

// dispatchedChild returns the child to be registered: the parent with payload, meta and a new id. The id is Nomad's
// form, parent/dispatch-PREFIX-seconds-random, and other programs take it apart. The request's meta wins over the
// parent's.
func (in *Intake) dispatchedChild(parent *drover.Job, r drover.DispatchRequest) *drover.Job {
	now := in.now()
	prefix := ""
	if r.IDPrefixTemplate != "" {
		prefix = r.IDPrefixTemplate + "-"
	}
	child := deepcopy.Of(parent)
	clearServerFields(child)
	child.ID = fmt.Sprintf("%s/dispatch-%s%d-%s", parent.ID, prefix, now.Unix(), in.deps.IDs.New()[:8])
	child.Name, child.ParentID, child.Dispatched = child.ID, parent.ID, true
	child.DispatchIdempotencyToken = r.IdempotencyToken
	child.Payload = r.Payload
	if r.Priority > 0 {
		child.Priority = r.Priority
	}
	if len(r.Meta) > 0 {
		child.Meta = maps.Clone(child.Meta)
		if child.Meta == nil {
			child.Meta = map[string]string{}
		}
		maps.Copy(child.Meta, r.Meta)
	}
	return child
}

// checkDispatch reports the first thing wrong with a dispatch request: Invalid, or TooLarge for the payload. The
// messages are Nomad's. A dispatched child has the parent's parameterized block too, but cannot be dispatched itself.
func (in *Intake) checkDispatch(j *drover.Job, r drover.DispatchRequest) error {
	p := j.ParameterizedJob
	switch {
	case p == nil || j.Dispatched:
		return drover.Errorf(drover.Invalid, "Specified job %q is not a parameterized job", j.ID)
	case j.Stop:
		return drover.Errorf(drover.Invalid, "Specified job %q is stopped", j.ID)
	case len(r.Payload) > MaxPayload:
		return drover.Errorf(drover.TooLarge, "Payload exceeds maximum size; %d > %d", len(r.Payload), MaxPayload)
	case p.Payload == "required" && len(r.Payload) == 0:
		return drover.Errorf(drover.Invalid, "Payload is not provided but required by parameterized job")
	case p.Payload == "forbidden" && len(r.Payload) > 0:
		return drover.Errorf(drover.Invalid, "Payload provided but forbidden by parameterized job")
	case len(r.IDPrefixTemplate) > maxIDPrefix || strings.ContainsAny(r.IDPrefixTemplate, " \x00"):
		return drover.Errorf(drover.Invalid, "IdPrefixTemplate: must have at most %d bytes, and no space or NUL", maxIDPrefix)
	case r.Priority < 0 || r.Priority > in.maxPriority():
		return drover.Errorf(drover.Invalid, "job priority must be between [1, %d]", in.maxPriority())
	}
	var unpermitted, missing []string
	for _, k := range slices.Sorted(maps.Keys(r.Meta)) {
		if !slices.Contains(p.MetaRequired, k) && !slices.Contains(p.MetaOptional, k) {
			unpermitted = append(unpermitted, k)
		}
	}
	for _, k := range p.MetaRequired {
		if _, ok := r.Meta[k]; !ok {
			missing = append(missing, k)
		}
	}
	if len(unpermitted) > 0 {
		return drover.Errorf(drover.Invalid, "Dispatch request included unpermitted metadata keys: %v", unpermitted)
	}
	if len(missing) > 0 {
		return drover.Errorf(drover.Invalid, "Dispatch did not provide required meta keys: %v", missing)
	}
	return nil
}

// ForcePeriodic launches a child of a periodic job now. Errors: NotFound, Invalid if it is not periodic or stopped.
func (in *Intake) ForcePeriodic(ctx context.Context, namespace, id string) (drover.Outcome, error) {
	return in.LaunchPeriodic(ctx, namespace, id, in.now())
}

// LaunchPeriodic launches the child of a periodic job that is due at the time; a second call for the same second does
// nothing. Errors: as ForcePeriodic.
func (in *Intake) LaunchPeriodic(ctx context.Context, namespace, id string, at time.Time) (drover.Outcome, error) {
	parent, err := in.job(namespace, id)
	switch {
	case err != nil:
		return drover.Outcome{}, err
	case !parent.Periodical():
		return drover.Outcome{}, drover.Errorf(drover.Invalid, "can't force launch non-periodic job")
	case parent.Stop:
		return drover.Outcome{}, drover.Errorf(drover.Invalid, "Specified job %q is stopped", id)
	}
	warnings, err := in.refused(ctx, parent)
	if err != nil {
		return drover.Outcome{}, err
	}
	child := deepcopy.Of(parent)
	clearServerFields(child)
	// The id holds the time of the launch, by which a second launch for the same time is recognized.
	child.ID = fmt.Sprintf("%s/periodic-%d", parent.ID, at.Unix())
	child.Name, child.ParentID, child.Periodic = child.ID, parent.ID, nil
	if old := in.deps.Store.Snapshot().Job(namespace, child.ID); old != nil {
		return drover.Outcome{Index: in.deps.Store.Index(), JobModifyIndex: old.JobModifyIndex, JobCreateIndex: old.CreateIndex}, nil
	}
	return in.register(ctx, child, registration{
		RegisterRequest: drover.RegisterRequest{EnforceIndex: true}, by: drover.TriggerPeriodicJob, warnings: warnings,
	})
}
