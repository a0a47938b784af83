package draft

import (
	"time"

	"github.com/drover-project/drover"
)

// FollowUpWindow is how much earlier than asked a follow-up may come: looks at about the same time share one evaluation.
const FollowUpWindow = 2 * time.Second

// Next returns a pending evaluation of the same job that follows e.
func Next(e *drover.Evaluation, id, trigger string, now time.Time) *drover.Evaluation {
	return &drover.Evaluation{
		ID: id, Namespace: e.Namespace, JobID: e.JobID, JobModifyIndex: e.JobModifyIndex, Priority: e.Priority,
		Type: e.Type, TriggeredBy: trigger, Status: drover.EvalPending, PreviousEval: e.ID,
		CreateTime: now.UnixNano(), ModifyTime: now.UnixNano(),
	}
}

// Wake asks for another look at a time and returns that evaluation's id. If the job has one pending for about then,
// or one in this plan, that is enough.
func (d *Draft) Wake(at time.Time, trigger, why string) string {
	serves := func(e *drover.Evaluation) bool {
		early := at.Sub(e.WaitUntil)
		return early >= 0 && early <= FollowUpWindow
	}
	for e := range d.snapshot.EvaluationsByJob(d.Eval.Namespace, d.Eval.JobID) {
		if e.ID != d.Eval.ID && e.Status == drover.EvalPending && e.WaitUntil.After(d.Now) && serves(e) {
			return e.ID
		}
	}
	for _, e := range d.FollowUps {
		if e.JobID == d.Eval.JobID && serves(e) {
			return e.ID
		}
	}
	e := Next(d.Eval, d.IDs.New(), trigger, d.Now)
	e.WaitUntil, e.StatusDescription = at, why
	d.FollowUps = append(d.FollowUps, e)
	return e.ID
}
