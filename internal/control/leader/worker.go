package leader

import (
	"context"
	"maps"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/planner"
	"github.com/drover-project/drover/internal/control/scheduler"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/control/trigger"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/tables"
)

// How often a plan is made anew because parts of it were refused; progress starts the count again.
const (
	serviceAttempts = 5
	batchAttempts   = 2
	totalAttempts   = 50
)

// A job whose plans were refused too often is looked at again after this.
const refusedDelay = time.Second

// What the log refused (a full disk, an election) is tried again after this.
const retryDelay = time.Second

// What the log refuses it refuses of all evaluations, each second: it is told as often as this.
const tellRefusals = time.Minute

var schedulerTypes = []string{drover.JobTypeService, drover.JobTypeBatch, drover.JobTypeSystem, drover.JobTypeSysBatch}

// worker takes evaluations from the broker, one at a time, and has their plans committed.
type worker struct {
	*Leader
	plans *planner.Planner

	told   time.Time // when it was told last that the log refuses
	untold int       // how often it did since
}

// tellRefusal tells once a minute that the log refuses evaluations, and how many more it did.
func (w *worker) tellRefusal(ctx context.Context, e *drover.Evaluation, err error) {
	if ctx.Err() != nil {
		return
	}
	if now := w.deps.Clock.Now(); w.told.IsZero() || now.Sub(w.told) >= tellRefusals {
		w.deps.Logger.Warn("evaluation refused; it is tried again, and this is told once a minute", "eval", e.ID, "job", e.JobID,
			"others", w.untold, "error", err)
		w.told, w.untold = now, 0
		return
	}
	w.untold++
}

// run works until ctx ends.
func (w *worker) run(ctx context.Context) {
	for w.unpaused(ctx) {
		types, until, stop := w.crew.work(ctx)
		if len(types) == 0 { // until there are schedulers again
			<-until.Done()
			stop()
			continue
		}
		began := w.deps.Clock.Now()
		e, token, err := w.broker.Dequeue(until, types...)
		stop()
		if err != nil {
			continue // the schedulers were changed, or ctx ended
		}
		w.took("nomad.nomad.worker.dequeue_eval", began)
		w.conclude(ctx, e, token, w.evaluate(ctx, e, token))
	}
}

// conclude tells the broker how it went. A stale token, which it refuses, means that another worker has the evaluation.
func (w *worker) conclude(ctx context.Context, e *drover.Evaluation, token string, err error) {
	began := w.deps.Clock.Now()
	if err == nil {
		defer w.took("nomad.nomad.eval.ack", began)
		_ = w.broker.Ack(e.ID, token)
		return
	}
	switch drover.CodeOf(err) {
	case drover.Unavailable, drover.Exhausted, drover.NotLeader: // the log's fault: a full disk, an election
		w.tellRefusal(ctx, e, err)
		_ = w.broker.Postpone(e.ID, token, retryDelay)
	default:
		if ctx.Err() == nil {
			w.deps.Logger.Warn("evaluation refused", "eval", e.ID, "job", e.JobID, "error", err)
		}
		defer w.took("nomad.nomad.eval.nack", began)
		_ = w.broker.Nack(e.ID, token)
	}
}

// unpaused waits while the broker is paused by configuration; it reports whether ctx still runs.
func (w *worker) unpaused(ctx context.Context) bool {
	for ctx.Err() == nil {
		changed := w.deps.Store.Watch(tables.SchedulerConfig, "")
		if c := w.deps.Store.Snapshot().SchedulerConfig(); c == nil || !c.PauseEvalBroker {
			return true
		}
		clock.Await(ctx, w.deps.Clock, clock.Forever, changed)
	}
	return false
}

// evaluate asks the scheduler and has its plan committed, again and again while parts of it are refused. The
// evaluation is stored as done by the entry that commits its last plan.
func (w *worker) evaluate(ctx context.Context, e *drover.Evaluation, token string) error {
	least := e.ModifyIndex
	limit := serviceAttempts
	if e.Type == drover.JobTypeBatch || e.Type == drover.JobTypeSysBatch {
		limit = batchAttempts
	}
	for attempt, total := 0, 0; attempt < limit && total < totalAttempts; total++ {
		s, err := w.stateAt(ctx, least)
		if err != nil {
			return err
		}
		stored := s.Evaluation(e.ID)
		if stored == nil || stored.Terminal() {
			return nil // dealt with: by a worker that could not say so any more, or cancelled
		}
		out, err := w.schedule(ctx, stored, s, total)
		if err != nil {
			return err
		}
		if stillBlocked(stored, out) {
			w.broker.Block(out.Eval, Ask(w.deps.Store.Snapshot(), out.Eval))
			return nil
		}
		out.Plan.EvalToken = token
		result, err := w.submit(ctx, out.Plan, append(out.NewEvals, out.Eval))
		if err != nil {
			return err
		}
		if result.RefreshIndex == 0 {
			return nil
		}
		least = result.RefreshIndex
		if scheduler.Progressed(&result) {
			attempt = 0
		} else {
			attempt++
		}
	}
	return w.giveUp(ctx, e, token)
}

// submit has a plan checked and committed. Nobody else gets the evaluation meanwhile. Errors: Conflict if somebody has it already.
func (w *worker) submit(ctx context.Context, plan *drover.Plan, evals []*drover.Evaluation) (drover.PlanResult, error) {
	defer w.took("nomad.nomad.worker.submit_plan", w.deps.Clock.Now())
	if err := w.broker.Submitting(plan.EvalID, plan.EvalToken); err != nil {
		return drover.PlanResult{}, err
	}
	defer func() { _ = w.broker.Submitted(plan.EvalID, plan.EvalToken) }() // it fails when the term of office has ended
	return w.plans.Submit(ctx, plan, evals)
}

// schedule computes when it is its turn.
func (w *worker) schedule(ctx context.Context, e *drover.Evaluation, s *store.Snapshot, attempt int) (scheduler.Output, error) {
	if err := w.crew.begin(ctx); err != nil {
		return scheduler.Output{}, err
	}
	defer w.crew.end()
	defer w.took("nomad.nomad.worker.invoke_scheduler."+e.Type, w.deps.Clock.Now())
	return w.deps.Schedule(scheduler.Input{
		Eval: e, Snapshot: s, Now: w.deps.Clock.Now(), Seed: id.Seed(w.deps.IDs.New()), Attempt: attempt,
	}), nil
}

// stillBlocked reports whether a blocked evaluation was looked at in vain: then nothing needs to be stored.
func stillBlocked(before *drover.Evaluation, out scheduler.Output) bool {
	return before.Status == drover.EvalBlocked && out.Eval.Status == drover.EvalBlocked && out.Plan.Empty() &&
		len(out.NewEvals) == 0 && before.QuotaLimitReached == out.Eval.QuotaLimitReached &&
		maps.Equal(before.QueuedAllocations, out.Eval.QueuedAllocations)
}

// stateAt returns a state that has at least the entry at index.
func (w *worker) stateAt(ctx context.Context, index uint64) (*store.Snapshot, error) {
	defer w.took("nomad.nomad.worker.wait_for_index", w.deps.Clock.Now())
	for {
		changed := w.deps.Store.WatchAny()
		if s := w.deps.Store.Snapshot(); s.Index() >= index {
			return s, nil
		}
		if !clock.Await(ctx, w.deps.Clock, clock.Forever, changed) {
			return nil, ctx.Err()
		}
	}
}

// giveUp marks an evaluation failed whose plans were refused too often, with another one that follows soon: waiting
// for capacity would not do, as there may be some.
func (w *worker) giveUp(ctx context.Context, e *drover.Evaluation, token string) error {
	_, err := w.submit(ctx, &drover.Plan{EvalID: e.ID, EvalToken: token, Priority: e.Priority}, refused(e, w.maker()))
	return err
}

// refused returns an evaluation whose plans were refused too often as failed, and the one that follows it.
func refused(e *drover.Evaluation, m trigger.Maker) []*drover.Evaluation {
	follow := follow(e, drover.TriggerMaxPlanAttempts, m, refusedDelay)
	failed := *e
	failed.Status, failed.StatusDescription = drover.EvalFailed, "maximum attempts reached: the state changed under each plan"
	failed.ModifyTime, failed.NextEval = m.Now, follow.ID
	return []*drover.Evaluation{&failed, follow}
}

// follow returns an evaluation of the same job for after that time.
func follow(e *drover.Evaluation, by string, m trigger.Maker, after time.Duration) *drover.Evaluation {
	return &drover.Evaluation{
		ID: m.IDs.New(), Namespace: e.Namespace, JobID: e.JobID, Type: e.Type, Priority: e.Priority, TriggeredBy: by,
		JobModifyIndex: e.JobModifyIndex, Status: drover.EvalPending, PreviousEval: e.ID,
		WaitUntil: time.Unix(0, m.Now).Add(after), CreateTime: m.Now, ModifyTime: m.Now,
	}
}
