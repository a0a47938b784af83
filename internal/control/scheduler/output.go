package scheduler

import (
	"maps"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/scheduler/draft"
)

// output gathers the answer.
func (r *run) output() Output {
	r.reconciler.Finish()
	if r.Eval.Status == drover.EvalBlocked && r.Job != nil && r.preempts() {
		r.NameEvicted()
	}
	for i := range r.groups {
		r.groups[i].Sentence = sentence(r.groups[i])
	}
	r.Plan.Annotations = &drover.PlanAnnotations{DesiredTGUpdates: r.Annotations}
	e := new(*r.Eval)
	e.Status, e.StatusDescription = drover.EvalComplete, r.reconciler.Slowed
	e.SnapshotIndex = r.snapshot.Index()
	e.ModifyTime = r.Now.UnixNano()
	e.FailedTGAllocs, e.QueuedAllocations, e.BlockedEval, e.QuotaLimitReached = nil, r.queued, "", ""
	e.DeploymentID = r.reconciler.DeploymentID()
	if e.AnnotatePlan {
		e.PlanAnnotations = r.Plan.Annotations
	}
	news := r.FollowUps
	if len(r.unfit) > 0 {
		e.FailedTGAllocs = r.unfit
	}
	if len(r.failed) > 0 {
		e.FailedTGAllocs = maps.Clone(r.failed)
		maps.Copy(e.FailedTGAllocs, r.unfit)
		classes, escaped := r.eligibility()
		if r.Eval.Status == drover.EvalBlocked {
			e.Status, e.StatusDescription = drover.EvalBlocked, blockedDescription
			e.ClassEligibility, e.EscapedComputedClass = classes, escaped
			r.quotaReached(e)
		} else {
			b := Blocked(r.Eval, r.IDs.New(), drover.TriggerQueuedAllocs, r.Now)
			b.ClassEligibility, b.EscapedComputedClass, b.SnapshotIndex = classes, escaped, r.snapshot.Index()
			r.quotaReached(b)
			e.BlockedEval, e.QuotaLimitReached = b.ID, b.QuotaLimitReached
			news = append(news, b)
		}
	}
	return Output{Plan: r.Plan, Eval: e, NewEvals: news, Explanation: Explanation{Groups: r.groups}}
}

const blockedDescription = "created to place remaining allocations"

// Blocked returns the evaluation that waits for capacity on behalf of e; trigger is queued-allocs, or
// max-plan-attempts when the planner refused too often. Without classes it wakes on anything.
func Blocked(e *drover.Evaluation, id, trigger string, now time.Time) *drover.Evaluation {
	b := draft.Next(e, id, trigger, now)
	b.Status, b.StatusDescription = drover.EvalBlocked, blockedDescription
	b.EscapedComputedClass = true
	return b
}

// eligibility says which classes may ever take what was not placed.
func (r *run) eligibility() (map[string]bool, bool) {
	classes, escaped := map[string]bool{}, false
	for _, b := range r.boards {
		if m := r.failed[b.Group.Name]; m != nil && len(m.QuotaExhausted) == 0 {
			escaped = b.Eligibility(classes) || escaped
		}
	}
	return classes, escaped
}
